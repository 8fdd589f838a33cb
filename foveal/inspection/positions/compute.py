"""Positions as numbers: vectors that are added, or angles by which queries and keys are rotated.

Sinusoids (Vaswani et al. 2017, 3.5): `PE(t) = (sin w_i t, cos w_i t)`, `w_i = 1 / 10000^(2i/D)`. A shift is a
rotation of each pair, `PE(t + k) = R_k PE(t)`, so the dot product `PE(t) . PE(t + k) = sum_i cos(w_i k)`
depends on the distance alone. Rotary positions (Su et al. 2021) rotate pair i of queries and keys by `w_i t`,
so a query and an equal key, turned to a distance k, have the mean of `cos(w_i k)`, weighted by their squares.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F


@runtime_checkable
class PositionModule(Protocol):
    """A module that makes the vectors of positions."""

    limit: int | None

    def __call__(self, offset: Int[Tensor, "#B"], size: int) -> Float[Tensor, "#B T D"]: ...


class SimilarityByDistance(NamedTuple):
    """The cosines of two positions at each distance: the mean, the lowest and the highest."""

    mean: list[float]
    low: list[float]
    high: list[float]


@torch.no_grad()
def position_vectors(module: PositionModule, count: int) -> Float[Tensor, "T D"]:
    """Return the vectors of the first positions."""
    return module(torch.zeros(1, dtype=torch.long), count)[0].float()


def similarity(vectors: Float[Tensor, "T D"]) -> Float[Tensor, "T T"]:
    """Return the cosine of each two positions."""
    unit = F.normalize(vectors.double(), dim=1)
    return (unit @ unit.T).float()


def similarity_by_distance(cosines: Float[Tensor, "T T"]) -> SimilarityByDistance:
    """Return the cosines of positions t and t + k, for each distance k."""
    diagonals = [cosines.diagonal(k) for k in range(len(cosines))]
    return SimilarityByDistance(
        [float(each.mean()) for each in diagonals],
        [float(each.min()) for each in diagonals],
        [float(each.max()) for each in diagonals],
    )


def rotary_angles(count: int, head_width: int) -> Float[Tensor, "T I"]:
    """Return the angle of each pair of a head at each position, `t / 10000^(2i/K)`."""
    half = head_width // 2
    frequencies = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    return torch.arange(count)[:, None] * frequencies
