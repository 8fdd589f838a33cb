"""The records of a run's log, and what their numbers mean."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from foveal.config import parse_toml
from foveal.config.regularizers import OFF, RAISE_TRAINING_LOSS
from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json
from foveal.inspection.diagnosis.diagnose import diagnose
from foveal.inspection.diagnosis.finding import Finding
from foveal.inspection.diagnosis.history import history_from_records
from foveal.store.manifest import LogUnits
from foveal.store.progress import is_at_its_end
from foveal.store.regular_files import read_regular
from foveal.store.run import RunFolder

Record = dict[str, Any]
"""A line of a metrics log."""
DRAWN_NUMBERS = {"step": ("step", "rate", "tokens"), "evaluation": ("step",)}
"""The fields of a record, beside its loss, that curves show."""
OWN_MODULE = "what the module does in training only"


def read_metrics_log(path: Path) -> defaultdict[str, list[Record]]:
    """Return the records of a metrics.jsonl by their kind.

    A last line without an end is left out: a training may be writing it.

    Raises: UserError: a line is damaged.
    """
    records = defaultdict[str, list[Record]](list)
    whole, _, _ = read_regular(path).rpartition(b"\n")
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            record = parse_json(line)
            known = _has_numbers(record)
        except (ValueError, TypeError, LookupError):
            known = False
        if not known:
            raise UserError(f"{path}, line {number}: damaged, so the run has no curves; restore the file")
        records[record["kind"]].append(record)
    return records


def _has_numbers(record: Record) -> bool:
    """Return whether the fields that curves show are numbers. A loss that was not finite is None."""
    numbers = [record[name] for name in DRAWN_NUMBERS.get(record["kind"], ())]
    return all(type(number) in (int, float) for number in numbers) and (
        not numbers or (record["step"] > 0 and type(record["loss"]) in (int, float, type(None)))
    )


@dataclass(frozen=True)
class LoggedTraining:
    """The log of a run, and what its numbers mean."""

    folder: RunFolder
    title: str
    units: LogUnits

    @cached_property
    def records(self) -> defaultdict[str, list[Record]]:
        """The records by their kind.

        Raises: UserError: a line of the log is damaged.
        """
        return read_metrics_log(self.folder.metrics)

    @cached_property
    def steps(self) -> list[Record]:
        """The records of steps whose loss is finite."""
        return [record for record in self.records["step"] if record["loss"] is not None]

    @cached_property
    def evaluations(self) -> list[Record]:
        """The records of evaluations whose loss is finite."""
        return [record for record in self.records["evaluation"] if record["loss"] is not None]

    @property
    def best(self) -> Record | None:
        """The evaluation with the lowest loss; None without evaluations."""
        return min(self.evaluations, key=lambda record: record["loss"], default=None)

    @property
    def is_rewarded(self) -> bool:
        """Return whether the loss is the missed share of a reward."""
        return bool(self.steps) and "reward" in self.steps[-1]

    @cached_property
    def findings(self) -> list[Finding]:
        """Return what the rules of the diagnosis say."""
        outcomes = self.units.num_outcomes
        chance = None if outcomes is None or self.is_rewarded else math.log(outcomes)
        folder = self.folder
        ended = is_at_its_end(folder.checkpoints, folder.weights)
        return diagnose(history_from_records(self.records, chance, self._regularizers(), ended))

    def _regularizers(self) -> tuple[str, ...]:
        """Return the settings by which the training loss is higher; config.toml has only those that are
        read."""
        if self.folder.has_own_module:
            return (OWN_MODULE,)
        tables = parse_toml(read_regular(self.folder.path / "config.toml"))
        return tuple(
            f"{name}={value}"
            for name, value in _settings(tables)
            if value not in OFF and f".{name}".endswith(tuple(f".{end}" for end in RAISE_TRAINING_LOSS))
        )


def _settings(tables: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted names of settings and their values."""
    for name, value in tables.items():
        if isinstance(value, Mapping):
            yield from _settings(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
