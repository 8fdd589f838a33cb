"""The runs that the page shows, by number. Only small files are read, without torch."""

from pathlib import Path

from foveal.api.page.computations import NotThere
from foveal.store.run_list import RunSummary, list_runs, summarize_run


class ShownRuns:
    """The runs of the page by number: those that were named, then the others of their folders."""

    def __init__(self, named: list[Path]):
        self._paths = [*named]

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

        Raises: NotThere: there is no run with this number.
        """
        if not 0 <= number < len(self._paths):
            raise NotThere("there is no such run; load the page anew")
        return self._paths[number]

    def version(self, number: int) -> str:
        """Return a text that changes when the run's log or weights change."""
        return version(self.path(number), "metrics.jsonl")


def version(path: Path, *more: str) -> str:
    """Return a text that changes when the weights of a run change, or `more` of its files."""
    times = []
    for name in ("model.safetensors", *more):
        try:
            times.append(str((path / name).stat().st_mtime_ns))
        except OSError:
            times.append("none")
    return "-".join(times)
