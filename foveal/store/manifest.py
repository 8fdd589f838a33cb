"""The manifest of a run, `run.json`: facts and hashes, whose types are checked before anything uses them."""

import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from foveal.core.errors import UserError
from foveal.store.regular_files import read_regular
from foveal.store.sealed_json import open_json

MANIFEST_FILE = "run.json"
LOCK_FILE = ".lock"
FIXED_FILE = re.compile(r"config\.toml|(inputs|plugins)(/\w[\w.-]*)+")
"""The names that `files` of a manifest may have: none leads out of the run."""


class _Facts(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class SplitFacts(_Facts):
    """The hash of a split, which shows whether the data have changed."""

    sha256: str


class PartsFacts(_Facts):
    parts: dict[str, SplitFacts]


class DataFacts(_Facts):
    """The data of a run: paths of the splits, the device of the training, and hashes of the splits."""

    data: str | None
    valid: str | None
    test: str | None
    device: str
    facts: PartsFacts


class LogUnits(_Facts):
    """What the numbers of a run's log mean."""

    speed_unit: str
    """The unit of a step's inputs, such as `characters`."""
    loss_unit: str | None
    """The loss is in nats for each of these, such as `token`; None for a loss without a unit."""
    num_outcomes: int | None
    """The number of outcomes between which an untrained model guesses; None if there is no such number."""


class ManifestFacts(_Facts):
    format: int
    foveal: str
    torch: str
    threads: int
    files: dict[str, str]
    data: dict[str, Any]
    plugins: dict[str, list[str]] = {}
    log_units: LogUnits | None = None


def read_manifest(run: Path) -> dict[str, Any]:
    """Read `run.json`.

    Raises: UserError: the file is damaged, edited, or not that of a run.
    """
    path = run / MANIFEST_FILE
    content = open_json(read_regular(path), str(path))
    try:
        facts = ManifestFacts.model_validate(content)
    except ValidationError:
        raise UserError(f"{run}: not a Foveal run: its run.json is not that of a run") from None
    if strange := [name for name in facts.files if not FIXED_FILE.fullmatch(name)]:
        raise UserError(f"{path}: names {strange[0]!r}, which is no file of a run; restore it")
    return content


def data_facts(manifest: dict[str, Any], run: Path) -> DataFacts:
    """Return the facts about the data of a run.

    Raises: UserError: the manifest has other fields than those of a run that was trained.
    """
    try:
        return DataFacts.model_validate(manifest["data"])
    except ValidationError as error:
        field = ".".join(map(str, error.errors()[0]["loc"]))
        raise UserError(f"{run / MANIFEST_FILE}: data.{field} is not that of a run; restore it") from None
