"""The law of precision: a model gives nearly the same in float32, in bfloat16, and in float64."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from foveal.core.runtime import Precision, autocast
from foveal.laws.law import LawBroken, largest_difference, require
from foveal.ops.jit.dispatch import reference_only
from foveal.studies.check.law import DEFAULT, Law

LOSS_TOLERANCE = 2e-4
"""The difference of a mean loss from that of the same logits in float64 that counts as rounding, relative to
the loss."""


class PrecisionLimit(NamedTuple):
    """The difference that counts as rounding in a precision."""

    precision: Precision
    logits: float
    """Relative to the largest logit in float64."""


SINGLE = (PrecisionLimit("float32", 1e-4),)
PRECISIONS = (*SINGLE, PrecisionLimit("bfloat16", 0.1))
Losses = Callable[[Any], tuple[Tensor, Tensor]]
"""Returns the mean loss of a model, and the mean cross-entropy of its logits in float64."""


def precision_law(
    model: nn.Module,
    logits: Callable[[Any], Tensor],
    losses: Losses | None,
    limits: Sequence[PrecisionLimit],
) -> Law:
    """Return the law that the logits of the default path, in float32 and under autocast in bfloat16, are
    those of the equations in float64, and that the loss loses no precision that the logits have."""
    check = partial(_check, model, logits, losses, limits)
    return Law("precisions agree", lambda path, length: check(), paths=(DEFAULT,))


@torch.no_grad()
def _check(
    model: nn.Module,
    logits: Callable[[Any], Tensor],
    losses: Losses | None,
    limits: Sequence[PrecisionLimit],
) -> None:
    exact, single = deepcopy(model).double(), deepcopy(model).float()
    with reference_only():
        wanted = logits(exact)
    for precision, limit in limits:
        with autocast(torch.device("cpu"), precision):
            _near(logits(single), wanted, limit, f"the logits in {precision} are not near those in float64")
            if losses is not None:
                problem = f"the loss in {precision} is not near that of its logits in float64"
                _near(*losses(single), LOSS_TOLERANCE, problem)


def _near(a: Tensor, b: Tensor, tolerance: float, problem: str) -> None:
    require(a.isfinite().all(), f"{problem}: it is not finite")
    size, difference = max(float(b.abs().max()), 1e-3), largest_difference(a, b)
    if difference > tolerance * size:
        raise LawBroken(f"{problem}, with more than {tolerance:g} of {size:.3g} between", difference)
