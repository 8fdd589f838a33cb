"""What a comparison says, in words. Each number stands in its tables, too."""

from collections.abc import Iterator

from foveal.core.terminal_text import counted
from foveal.studies.compare.comparison import Comparison, Cost
from foveal.studies.compare.differences import Difference

BETTER = "better on the seeds that both have"
"""What a model is that is told apart from that with the lowest mean. Failed trainings leave means over other
seeds."""


def loss_text(loss: float) -> str:
    """Return a loss, as tables and sentences write it."""
    return f"{loss:.4f}"


def p_text(p_value: float) -> str:
    """Return the probability of a difference, as tables and sentences write it."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"


def verdict(comparison: Comparison) -> str:
    """Return the result in one line."""
    best, others = comparison.best, comparison.trained[1:]
    excess = {each.name: _told_apart(comparison, each.name, best.name) for each in others}
    better = [name for name, more in excess.items() if more < 0]
    worse = [name for name, more in excess.items() if more > 0]
    if not others:
        return f"{best.name} alone was trained"
    if better:
        return f"{best.name} has the lowest mean loss, but {_listed(better)} {_are(better)} {BETTER}"
    if len(worse) == len(others):
        return f"{best.name} is best"
    if not worse:
        return f"no model is told apart from {best.name}, which has the lowest mean loss"
    return f"{best.name} has the lowest mean loss, and is told apart from {_listed(worse)} only"


def conclusions(comparison: Comparison) -> str:
    """Return a paragraph on losses, differences and costs."""
    return " ".join([*_on_losses(comparison), *_on_costs(comparison), *_on_far_context(comparison)])


def _on_losses(comparison: Comparison) -> Iterator[str]:
    best = comparison.best
    loss, over = loss_text(best.mean("loss")), counted(best.count, comparison.noun)
    yield (
        f"{best.name} has the lowest mean {comparison.split} loss, {loss} {comparison.loss_unit} over {over}."
    )
    for other in comparison.trained[1:]:
        difference = comparison.difference(other.name, best.name)
        if difference is None:
            yield f"Between {best.name} and {other.name} nothing can be said: they share too few seeds."
        else:
            yield _on_difference(difference)


def _on_difference(difference: Difference) -> str:
    """Return what a model is against that with the lowest mean."""
    excess = difference.mean.value
    result = "indistinguishable from it"
    if difference.verdict == "told apart":
        result = "worse" if excess > 0 else BETTER
    numbers = f"{loss_text(abs(excess))} {'less' if excess < 0 else 'more'}, {p_text(difference.p_value)}"
    return f"{difference.first} is {result} ({numbers})."


def _on_costs(comparison: Comparison) -> Iterator[str]:
    costs: dict[Cost, str] = {"seconds": "training time", "flops": "FLOPs"}
    for cost, name in costs.items():
        front = [model.name for model in comparison.front(cost)]
        beaten = [model.name for model in comparison.trained if model.name not in front]
        if not beaten:
            yield f"By their means, no model is beaten in loss and {name}."
            continue
        others = f"{_listed(front)} {_are(front)} not"
        yield (
            f"By their means, {_listed(beaten)} {_are(beaten)} beaten in loss and {name}: another is lower "
            f"in one of them and not higher in the other; {others}."
        )


def _on_far_context(comparison: Comparison) -> Iterator[str]:
    sequences = comparison.sequences
    if sequences is None or not sequences.positions_alike or len(sequences.ranges()) < 2:
        return
    gains = sequences.last_gains()
    most = max(gains, key=gains.__getitem__)
    *_, before, last = sequences.ranges().values()
    where = f"{last}, against {before}"
    if gains[most] <= 0:
        yield f"No model gains from far context ({where})."
        return
    others = [f"{loss_text(gain)} for {name}" for name, gain in gains.items() if name != most]
    yield (
        f"{most} gains most from far context, {loss_text(gains[most])} ({where})"
        f"{f'; it is {_listed(others)}' if others else ''}."
    )


def _told_apart(comparison: Comparison, first: str, second: str) -> float:
    """Return how much more loss a model has than another, if they are told apart; else 0."""
    difference = comparison.difference(first, second)
    return difference.mean.value if difference and difference.verdict == "told apart" else 0.0


def _are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _listed(names: list[str]) -> str:
    """Return names as an enumeration."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
