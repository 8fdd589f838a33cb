"""The runs that the page shows: opened when they are needed, and again when they have changed."""

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from foveal.core.log import Log
from foveal.data.core.prepared_data import PreparedData
from foveal.store.run_list import RunSummary, list_runs, summarize_run
from foveal.tasks.session import EvaluationData, Session, load
from foveal.ui.console import log as console_log


@dataclass(frozen=True)
class CachedSession(Session):
    """A run whose own data are read once, for several views."""

    _data: dict[str, Any] = field(default_factory=dict)

    def held_out(self, data: str | None, option_hint: str, log: Log = console_log) -> EvaluationData:
        """Return all of `data`, or the run's own held-out split, which is read once.

        Raises: UserError: as for any run.
        """
        if data is not None:
            return super().held_out(data, option_hint, log)
        if "held_out" not in self._data:
            self._data["held_out"] = super().held_out(None, option_hint, log)
        split: EvaluationData = self._data["held_out"]
        return split

    def training_data(self, log: Log = console_log) -> PreparedData[Any, Any]:
        """Return the run's own data as in training, which are read once.

        Raises: UserError: as for any run.
        """
        if "training" not in self._data:
            self._data["training"] = super().training_data(log)
        prepared: PreparedData[Any, Any] = self._data["training"]
        return prepared


def cached(session: Session) -> CachedSession:
    """Return the same run with its data read once."""
    return CachedSession(session.run, session.task, session.objective)


class OpenedRuns:
    """The runs of the page by number: those that were named, then the others of their folders."""

    def __init__(self, named: list[Path], device: torch.device):
        self._device = device
        self._paths = [*named]
        self._lock = threading.Lock()
        self._sessions: dict[Path, tuple[object, CachedSession]] = {}

    def summaries(self) -> list[RunSummary]:
        """Return the facts of all runs. New runs in the folders come last, so that numbers stay."""
        known = {path.resolve() for path in self._paths}
        for folder in {path.parent: None for path in [*self._paths]}:
            for path in [Path(summary.run) for summary in list_runs(folder)]:
                if path.resolve() not in known:
                    known.add(path.resolve())
                    self._paths.append(path)
        return [summarize_run(path) for path in self._paths]

    def path(self, number: int) -> Path:
        """Return the folder of a run.

        Raises: IndexError: there is no run with this number.
        """
        if number < 0:
            raise IndexError(number)
        return self._paths[number]

    def session(self, number: int) -> CachedSession:
        """Return a run with its model, read again if it has other weights than before.

        Raises: UserError: the run is damaged, or has no weights yet.
        """
        path = self.path(number)
        with self._lock:
            version = _version(path)
            opened = self._sessions.get(path)
            if opened is None or opened[0] != version:
                opened = self._sessions[path] = (version, cached(load(path, self._device)))
            return opened[1]

    def version(self, number: int) -> str:
        """Return a text that changes when the run's log or weights change."""
        return _version(self.path(number), "metrics.jsonl")


def _version(path: Path, *more: str) -> str:
    times = []
    for name in ("model.safetensors", *more):
        try:
            times.append(str((path / name).stat().st_mtime_ns))
        except OSError:
            times.append("none")
    return "-".join(times)
