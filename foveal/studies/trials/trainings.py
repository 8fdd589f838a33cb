"""The trainings of a study, each in a process of its own, one after the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from foveal.core.errors import RunFailed
from foveal.core.signals import SignalHandler
from foveal.studies.trials.process import TrialEnd, train_in_process
from foveal.studies.trials.records import Record
from foveal.training.plan import Budget
from foveal.ui.progress_bar import ProgressBar

PARTS = 100
"""The parts of a training that its progress counts."""
SPENT = {"seconds": "seconds", "steps": "step", "tokens": "tokens", "epochs": "epoch"}
"""The field of a record that says how much of a budget is spent, by the budget's unit."""


@dataclass(frozen=True)
class Training:
    """A training of a study."""

    model: str
    seed: int
    path: Path
    arguments: tuple[str, ...]
    """The arguments of `foveal train`."""


def train_all(
    trainings: Sequence[Training], budget: Budget, signals: SignalHandler
) -> dict[tuple[str, int], TrialEnd]:
    """Train all models with a first seed, then all with a second, so that an early end leaves a whole
    comparison. Return how each training ended.

    Raises: RunFailed: each model failed with the first seed.
    """
    ends: dict[tuple[str, int], TrialEnd] = {}
    by_seed = sorted(trainings, key=lambda each: each.seed)
    for number, each in enumerate(by_seed, 1):
        name = f"{each.path.name}, training {number} of {len(by_seed)}, parts"
        with ProgressBar(name) as progress:
            ends[each.model, each.seed] = train_in_process(
                each.path, each.arguments, signals, _shown(progress, budget)
            )
        is_last_of_seed = number == len(by_seed) or by_seed[number].seed != each.seed
        if is_last_of_seed and all(end.state == "failed" for end in ends.values()):
            path, error = by_seed[0].path, ends[by_seed[0].model, by_seed[0].seed].error
            raise RunFailed(f"all {len(ends)} trainings failed; the first error, in {path}: {error}")
    return ends


def _shown(progress: Callable[[int, int], None], budget: Budget) -> Callable[[Record], bool]:
    """Return a function that shows how much of a budget is spent after a record, and never stops."""
    shown = 0
    progress(shown, PARTS)

    def watch(record: Record) -> bool:
        nonlocal shown
        spent = record.get(SPENT[budget.unit], 0) / budget.amount
        part = min(PARTS, int(PARTS * spent))
        if part > shown:
            shown = part
            progress(part, PARTS)
        return False

    return watch
