"""What a comparison says, in words. Each number stands in its tables, too."""

from collections.abc import Iterator

from foveal.core.terminal_text import counted
from foveal.studies.compare.comparison import Comparison, Cost
from foveal.studies.compare.differences import Difference


def loss_text(loss: float) -> str:
    """Return a loss, as tables and sentences write it."""
    return f"{loss:.4f}"


def p_text(p_value: float) -> str:
    """Return the probability of a difference, as tables and sentences write it."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"


def verdict(comparison: Comparison) -> str:
    """Return the result in one line."""
    best, others = comparison.best, comparison.trained[1:]
    apart = [each.name for each in others if _is_apart(comparison, best.name, each.name)]
    if not others:
        return f"{best.name} alone was trained"
    if len(apart) == len(others):
        return f"{best.name} is best"
    if not apart:
        return f"no model is told apart from {best.name}, which has the lowest mean loss"
    return f"{best.name} has the lowest mean loss, and is told apart from {_listed(apart)} only"


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
        difference = comparison.difference(best.name, other.name)
        if difference is None:
            yield f"Between {best.name} and {other.name} nothing can be said: they share too few seeds."
        else:
            yield _on_difference(difference, other.name)


def _on_difference(difference: Difference, other: str) -> str:
    numbers = f"{loss_text(abs(difference.mean.value))} more, {p_text(difference.p_value)}"
    if difference.verdict == "told apart":
        return f"{other} is worse ({numbers})."
    return f"{other} is indistinguishable from it ({numbers})."


def _on_costs(comparison: Comparison) -> Iterator[str]:
    costs: dict[Cost, str] = {"seconds": "training time", "flops": "FLOPs"}
    for cost, name in costs.items():
        front = [model.name for model in comparison.front(cost)]
        beaten = [model.name for model in comparison.trained if model.name not in front]
        if not beaten:
            yield f"By their means, no model is beaten in both loss and {name}."
            continue
        verb = "is" if len(beaten) == 1 else "are"
        others = f"{_listed(front)} {'is' if len(front) == 1 else 'are'} not"
        yield f"By their means, {_listed(beaten)} {verb} beaten in both loss and {name}; {others}."


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


def _is_apart(comparison: Comparison, first: str, second: str) -> bool:
    difference = comparison.difference(first, second)
    return difference is not None and difference.verdict == "told apart"


def _listed(names: list[str]) -> str:
    """Return names as an enumeration."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
