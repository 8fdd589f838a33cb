"""The runs that the page shows: opened when they are needed, and again when they have changed."""

import threading
from pathlib import Path

import torch

from foveal.store.run_list import RunSummary, list_runs, summarize_run
from foveal.tasks.cached_session import CachedSession, cached
from foveal.tasks.session import load


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
