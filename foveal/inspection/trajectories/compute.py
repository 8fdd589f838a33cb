"""Principal axes of states: the directions along which they vary most (Pearson 1901; Hotelling 1933)."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class PrincipalAxes(NamedTuple):
    """The mean of states, and orthogonal directions in the order of the variance along them."""

    mean: Float[Tensor, " U"]
    directions: Float[Tensor, "U U"]
    """A direction in each row. Its largest component is positive, so that pictures do not flip."""
    fractions: Float[Tensor, " U"]
    """The share of the whole variance along each direction."""

    def project(self, states: Float[Tensor, "T U"], count: int) -> Float[Tensor, "T _"]:
        """Return the coordinates of states on the first `count` directions, from the mean."""
        return (states.to(self.mean) - self.mean) @ self.directions[:count].T


def principal_axes(chunks: Iterable[Float[Tensor, "_ _ U"]]) -> PrincipalAxes:
    """Return the principal axes of all states of a text: the eigenvectors of their covariance.

    The sums are in float64, so that chunks add up without loss.
    """
    count, total, products = 0, torch.zeros(()), torch.zeros(())
    for chunk in chunks:
        states = chunk.detach().flatten(0, 1).double().cpu()
        count, total, products = count + len(states), total + states.sum(0), products + states.T @ states
    mean = total / count
    variances, vectors = torch.linalg.eigh(products / count - mean[:, None] * mean)
    variances, directions = variances.flip(0).clamp(min=0), vectors.flip(1).T
    signs = directions.gather(1, directions.abs().argmax(1, keepdim=True)).sign()
    whole = variances.sum()
    fractions = variances / whole if whole > 0 else torch.zeros_like(variances)
    return PrincipalAxes(mean, directions * signs, fractions)
