"""The parameters and the training of a preset's model, as its paper and the lectures give them."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

TABLE = Path(__file__).with_name("published.toml")


class PublishedTraining(BaseModel):
    """How long a model was trained. `flops` are the operations as the paper reckons them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens: int
    source: str
    flops: float | None = None
    reckoning: str = ""
    """How the paper reckons them, if not 6 for each parameter and token."""


class PublishedModel(BaseModel):
    """The size of a model as published."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    parameters: int
    source: str
    lecture: int | None = None
    """The parameters in the lectures' table, if they have any."""
    difference: str = ""
    """Why the count is another. Empty if the published figure is the count, rounded."""
    training: PublishedTraining | None = None


@cache
def all_published() -> dict[str, PublishedModel]:
    """Return what is published of models, by preset."""
    tables: dict[str, Any] = tomllib.loads(TABLE.read_text("utf-8"))
    return {name: PublishedModel(**table) for name, table in tables.items()}
