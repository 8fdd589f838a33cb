"""Gradients that must exist."""

from torch import Tensor


def gradient_of(weight: Tensor) -> Tensor:
    """Return the gradient of a weight; fail if there is none."""
    assert weight.grad is not None
    return weight.grad
