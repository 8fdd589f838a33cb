"""The laws of precision: a model gives nearly the same in float32, in bfloat16, and in float64, and so do its
gradients."""

from collections.abc import Callable, Iterator, Sequence
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
SMALL_GRADIENT = 0.1
"""The share of the largest gradient's norm below which a gradient may be a sum of numbers that cancel."""


class PrecisionLimit(NamedTuple):
    """The differences that count as rounding in a precision."""

    precision: Precision
    logits: float
    """Relative to the largest logit in float64."""
    gradients: float
    """Norm of the difference of a parameter's gradient, relative to its norm in float64."""


SINGLE = (PrecisionLimit("float32", 1e-4, 0.05),)
PRECISIONS = (*SINGLE, PrecisionLimit("bfloat16", 0.1, 0.5))
Losses = Callable[[Any], tuple[Tensor, Tensor]]
"""Returns the mean loss of a model, and the mean cross-entropy of its logits in float64."""


def laws_of_precision(
    model: nn.Module,
    logits: Callable[[Any], Tensor],
    losses: Losses | None,
    limits: Sequence[PrecisionLimit],
) -> Iterator[Law]:
    """Yield the laws that the logits and the gradients of the default path, in float32 and under autocast in
    bfloat16, are those of the equations in float64, and that the loss loses no precision that the logits
    have."""
    check = partial(_check, model, logits, losses, limits)
    yield Law("precisions agree", lambda path, length: check(), paths=(DEFAULT,))
    check_gradients = partial(_check_gradients, model, logits, limits)
    yield Law("gradients of precisions agree", lambda path, length: check_gradients(), paths=(DEFAULT,))


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
    for precision, limit, _ in limits:
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


def _check_gradients(
    model: nn.Module, logits: Callable[[Any], Tensor], limits: Sequence[PrecisionLimit]
) -> None:
    with reference_only():
        wanted = _gradients(deepcopy(model).double(), logits)
    norms = {name: float(gradient.norm()) for name, gradient in wanted.items()}
    least = SMALL_GRADIENT * max(norms.values(), default=0.0)
    for precision, _, limit in limits:
        with autocast(torch.device("cpu"), precision):
            gradients = _gradients(deepcopy(model).float(), logits)
        for name, gradient in gradients.items():
            size, difference = max(norms[name], least), float((gradient - wanted[name]).norm())
            if not difference <= limit * size:  # also if it is NaN
                problem = f"the gradient of {name} in {precision} is not near that in float64"
                raise LawBroken(f"{problem}, with more than {limit:g} of {size:.3g} between", difference)


def _gradients(model: nn.Module, logits: Callable[[Any], Tensor]) -> dict[str, Tensor]:
    """Return the gradients of all parameters, zeros where there are none, for a random one of the logits."""
    result = logits(model).double()
    if result.requires_grad:
        generator = torch.Generator().manual_seed(0)
        result.backward(torch.randn(result.shape, generator=generator, dtype=result.dtype))  # type: ignore[no-untyped-call]
    return {
        name: torch.zeros_like(weight).double() if weight.grad is None else weight.grad.double()
        for name, weight in model.named_parameters()
    }
