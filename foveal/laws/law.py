"""A law that does not hold: what was compared, and the largest difference."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class LawBroken(AssertionError):
    """A module does not keep a law. `difference` is the largest difference of two results that must agree."""

    def __init__(self, problem: str, difference: float | None = None):
        size = "" if difference is None else f" (largest difference {difference:.3g})"
        super().__init__(f"{problem}{size}")
        self.problem, self.difference = problem, difference


def require(holds: object, problem: str) -> None:
    """Check a condition.

    Raises: LawBroken: it does not hold.
    """
    if not holds:
        raise LawBroken(problem)


def largest_difference(a: Tensor, b: Tensor) -> float:
    """Return the largest absolute difference of two tensors of one shape; infinite where only one is NaN."""
    if not a.numel():
        return 0.0
    a, b = a.detach().double(), b.detach().double()
    apart = (a - b).abs().where(a.ne(b) & ~(a.isnan() & b.isnan()), 0.0)
    return float(apart.nan_to_num(nan=torch.inf).max())


def require_shape(a: Tensor, shape: Sequence[int], what: str) -> None:
    """Check the shape of a result.

    Raises: LawBroken: it is another.
    """
    require(a.shape == tuple(shape), f"{what} of the shape {tuple(a.shape)}, not {tuple(shape)}")


def require_equal(a: Tensor, b: Tensor, problem: str) -> None:
    """Check that two results are equal bit for bit.

    Raises: LawBroken: they differ; `problem` says what that means.
    """
    require_shape(a, b.shape, problem)
    if not torch.equal(a, b):
        raise LawBroken(problem, largest_difference(a, b))


def require_close(a: Tensor, b: Tensor, tolerance: float, problem: str) -> None:
    """Check that two results are equal up to rounding, relative to the largest number.

    Raises: LawBroken: they differ; `problem` says what that means.
    """
    require_shape(a, b.shape, problem)
    size = float(b.detach().abs().max()) if b.numel() else 0.0
    if not torch.allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, size)):
        raise LawBroken(problem, largest_difference(a, b))


def require_gradients(module: nn.Module, loss: Tensor) -> None:
    """Check that every parameter's gradient exists and is finite.

    Raises: LawBroken: a parameter learns nothing, or its gradient is not finite.
    """
    module.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad:
            continue
        require(parameter.grad is not None, f"the parameter {name} gets no gradient")
        assert parameter.grad is not None
        require(parameter.grad.isfinite().all(), f"the gradient of {name} is not finite")


def reset_everything(module: nn.Module) -> None:
    """Check that `reset_parameters` fills every parameter and buffer of a module without storage.

    The module is changed.

    Raises: LawBroken: a parameter or a buffer was not filled.
    """
    with torch.no_grad():
        for part in (*module.parameters(), *module.buffers()):
            if part.is_floating_point():
                part.fill_(torch.nan)
    for layer in module.modules():
        reset = getattr(layer, "reset_parameters", None)
        if reset is not None:
            reset()
    for name, part in (*module.named_parameters(), *module.named_buffers()):
        if part.is_floating_point():
            require(part.isfinite().all(), f"reset_parameters leaves {name} as it was")


def randomize(module: nn.Module, size: float) -> None:
    """Fill the parameters of a module with weights so large that errors become visible."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.uniform_(-size, size)
