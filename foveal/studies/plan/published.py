"""The parameters and the training of models, as their papers and the lectures give them."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from foveal.studies.plan.training_length import TrainingLength

TABLE = Path(__file__).with_name("published.toml")


class PublishedModel(BaseModel):
    """The size of a model as published."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    parameters: int | None = None
    """None if the paper does not give them."""
    multiplications: int | None = None
    """Multiplications of the forward pass of an image, each with its addition."""
    source: str
    lecture: int | None = None
    """The parameters in the lectures' table, if they have any."""
    difference: str = Field(min_length=1)
    """Why the count is another."""
    training: TrainingLength | None = None


@cache
def all_published() -> dict[str, PublishedModel]:
    """Return what is published of models, by preset or network."""
    tables: dict[str, Any] = tomllib.loads(TABLE.read_text("utf-8"))
    return {name: PublishedModel(**table) for name, table in tables.items()}
