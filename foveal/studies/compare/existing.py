"""Runs that were trained before, compared on the same held-out rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.terminal_text import counted
from foveal.metrics.student_t import Mean
from foveal.studies.compare.comparison import Comparison, units_of
from foveal.studies.compare.differences import Difference, corrected_differences
from foveal.studies.compare.plan import planned_model
from foveal.studies.compare.results import ModelResult, logged_run
from foveal.studies.compare.rows import MIN_ROWS, RowLosses, resampled_mean, row_losses
from foveal.studies.trials.same_data import check_same_data
from foveal.tasks.session import Session

OVER_ROWS = (
    "each run was trained once: intervals are over rows, and another seed differs, too. Rows of one text "
    "depend on each other, so their intervals are too narrow. The p-values are corrected for the number of "
    "pairs (Holm)"
)


@dataclass(frozen=True)
class ScoredRun:
    """A run with the loss of each held-out row."""

    name: str
    path: Path
    result: ModelResult
    split: str
    losses: RowLosses


def compare_runs(
    paths: Sequence[Path], open_run: Callable[[Path], Session], log: Log, progress: ProgressCallback
) -> Comparison:
    """Return the comparison of runs on the held-out rows that they have in common.

    Raises: UserError: a run can't be opened, has too few held-out rows, or has others than the first.
    """
    names = _names(paths)
    scored = list[ScoredRun]()
    for name, path in zip(names, paths, strict=True):
        scored.append(_score(name, open_run(path), log, progress))
        check_same_data([scored[0].path, path], (scored[0].split,))
        _check_same_rows(scored[0], scored[-1])
    rows = len(scored[0].losses)
    if rows < MIN_ROWS:
        few = f"{counted(rows, 'row')} of the {scored[0].split} split"
        raise UserError(f"{paths[0]}: {few} can be scored alone; runs are told apart by {MIN_ROWS} or more")
    unit, speed_unit = units_of(scored[0].path)
    facts = (
        ("equal terms", f"the same {rows:,} rows of the {scored[0].split} split"),
        (
            "runs",
            ", ".join(str(path) for path in paths),
        ),
    )
    return Comparison(
        None,
        " and ".join(names) if len(names) == 2 else f"{len(names)} runs",
        facts,
        OVER_ROWS,
        "row",
        scored[0].split,
        unit,
        speed_unit,
        tuple(each.result for each in scored),
        _differences(scored),
    )


def _names(paths: Sequence[Path]) -> list[str]:
    """Return the names of the runs' folders, or their paths if two have one name."""
    names = [path.name for path in paths]
    return names if len({*names}) == len(names) else [str(path) for path in paths]


def _score(name: str, session: Session, log: Log, progress: ProgressCallback) -> ScoredRun:
    """Return a run with the loss of each held-out row."""
    data, split, _ = session.held_out(None, "to compare the run on", log)
    losses = row_losses(session, data, progress)
    mean = _mean(losses)
    path = session.run.path
    run = logged_run(path, session.config.training.seed, split, {"loss": mean.value})
    plan = planned_model(name, _preset(session), session.config, session.config, session.training_data(log))
    return ScoredRun(name, path, ModelResult(plan, (run,), {}, len(losses), mean), split, losses)


def _preset(session: Session) -> str:
    return str(session.run.manifest["data"].get("preset", ""))


def _check_same_rows(first: ScoredRun, other: ScoredRun) -> None:
    """Check that the rows of two runs are the same tokens or labels.

    Raises: UserError: they are cut in another way.
    """
    weights = [{key: weight for key, (_, weight) in each.losses.items()} for each in (first, other)]
    if first.split != other.split or weights[0] != weights[1]:
        raise UserError(
            f"{other.path}: its held-out rows are cut in another way than those of {first.path}, so they "
            "can't be paired: compare runs with equal settings of data"
        )


def _mean(losses: RowLosses, pairs: int = 1) -> Mean:
    sums, weights = np.array([losses[key] for key in sorted(losses)]).T
    return resampled_mean(sums, weights, pairs)


def _differences(runs: Sequence[ScoredRun]) -> list[Difference]:
    """Return the differences of all pairs, over rows that are drawn for both."""
    means: dict[tuple[str, str], Mean] = {}
    of_all = len(runs) * (len(runs) - 1) // 2
    for first, second in combinations(runs, 2):
        pairs = {key: (loss - second.losses[key][0], weight) for key, (loss, weight) in first.losses.items()}
        means[first.name, second.name] = _mean(pairs, of_all)
    return corrected_differences(means)
