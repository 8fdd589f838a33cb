"""A law that does not hold: what was compared, and the largest difference."""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

WIDE = 32
"""Inputs of a layer from which on random weights are smaller."""


class LawBroken(AssertionError):
    """A module does not keep a law. `difference` is the largest difference of two results that must agree.
    `place` is the first of them that differs, such as "row 1, position 3".
    """

    def __init__(self, problem: str, difference: float | None = None, place: str = ""):
        size = "" if difference is None else f" (largest difference {difference:.3g})"
        super().__init__(f"{problem}{size}")
        self.problem, self.difference, self.place = problem, difference, place


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


def require_same_rows(a: Tensor, b: Tensor, tolerance: float, problem: str) -> None:
    """Check that results (B, T, ...) or (B, C) are equal up to rounding, relative to the largest number of
    `b`. With a tolerance of 0 they are equal bit for bit.

    Raises: LawBroken: they differ; its place is the first row and position where they do.
    """
    require_shape(a, b.shape, problem)
    size = max(1.0, float(b.detach().abs().max())) if b.numel() else 1.0
    apart = ~torch.isclose(a.detach(), b.detach(), rtol=0.0, atol=tolerance * size, equal_nan=True)
    if not apart.any():
        return
    row, *more = apart.nonzero()[0].tolist()
    place = f"row {row}" + (f", position {more[0]}" if a.dim() > 2 else "")
    raise LawBroken(problem, largest_difference(a, b), place)


def require_nothing_kept(
    module: nn.Module, call: Callable[[], Sequence[Tensor]], other: Callable[[], object]
) -> None:
    """Check that a module keeps nothing between calls: `call` returns the same tensors before and after
    `other`, a call with another input.

    Raises: LawBroken: the module keeps something.
    """
    first = [part.clone() for part in call()]
    attributes = {name: {*vars(part)} for name, part in module.named_modules()}
    other()
    for again, before in zip(call(), first, strict=True):
        require_equal(
            again,
            before,
            "a second call with the same input has other outputs: state is kept, or random numbers are drawn",
        )
    for name, part in module.named_modules():
        added = ", ".join(sorted({*vars(part)} - attributes[name]))
        require(not added, f"a call adds an attribute to the module: {added}")


def require_gradients(module: nn.Module, loss: Tensor) -> None:
    """Check that every parameter's gradient exists and is finite.

    Raises: LawBroken: a parameter learns nothing, or its gradient is not finite.
    """
    module.zero_grad()
    if loss.requires_grad:  # else nothing learns, or there are no parameters
        loss.backward()  # type: ignore[no-untyped-call]
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad:
            continue
        require(parameter.grad is not None, f"the parameter {name} gets no gradient")
        assert parameter.grad is not None
        require(parameter.grad.isfinite().all(), f"the gradient of {name} is not finite")


def reset_everything(module: nn.Module, parts: Iterable[tuple[str, Tensor]]) -> None:
    """Check that `reset_parameters` fills some parameters and buffers of a module, which lose their numbers.

    Raises: LawBroken: one was not filled.
    """
    numbers = [(name, part) for name, part in parts if part.is_floating_point()]
    with torch.no_grad():
        for _, part in numbers:
            part.fill_(torch.nan)
    for layer in module.modules():
        reset = getattr(layer, "reset_parameters", None)
        if reset is not None:
            reset()
    for name, part in numbers:
        require(part.isfinite().all(), f"reset_parameters leaves {name} as it was")


def reset_all_parameters(module: nn.Module) -> None:
    """Check that `reset_parameters` fills all parameters of a module, which lose their numbers.

    Raises: LawBroken: one was not filled.
    """
    reset_everything(module, module.named_parameters())


def randomize(module: nn.Module, size: float) -> None:
    """Fill the parameters of a module with weights so large that errors become visible.

    `size` is the largest. Weights of wide layers are smaller, or rounding errors would grow from layer to
    layer.
    """
    with torch.no_grad():
        for parameter in module.parameters():
            inputs = parameter[0].numel() if parameter.dim() > 1 else 1
            largest = size * min(1.0, (WIDE / inputs) ** 0.5)
            parameter.uniform_(-largest, largest)
