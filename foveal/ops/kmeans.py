"""Clusters: centres such that points lie near one of them."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

POINTS_PER_CHUNK = 1 << 12
"""Points whose products with all centres are held at a time."""


def kmeans(points: Float[Tensor, "N D"], count: int, rounds: int) -> Float[Tensor, "K D"]:
    """K = `count` centres that make `sum_n min_k |x_n - c_k|^2` small (Lloyd 1982), from a k-means++ start.

    In each round every centre goes to the mean of the points nearest to it; one that has none stays. Random
    choices are torch's. N must be at least K.
    """
    centres = kmeans_plus_plus(points, count)
    for _ in range(rounds):
        labels = nearest_center(points, centres)
        sums = torch.zeros_like(centres).index_add_(0, labels, points)
        sizes = labels.bincount(minlength=count)[:, None]
        centres = torch.where(sizes > 0, sums / sizes.clamp(min=1), centres)
    return centres


def kmeans_plus_plus(points: Float[Tensor, "N D"], count: int) -> Float[Tensor, "K D"]:
    """`count` of the points: each next one with a chance in proportion to its squared distance from the
    nearest before (Arthur and Vassilvitskii 2007, k-means++)."""
    chosen = [int(torch.randint(len(points), ()))]
    away = (points - points[chosen[0]]).square().sum(1)
    for _ in range(count - 1):
        reach = away.cumsum(0, dtype=torch.float64)
        place = torch.rand((), dtype=torch.float64).item() * reach[-1]
        chosen.append(min(int(torch.searchsorted(reach, place, right=True)), len(points) - 1))
        away = torch.minimum(away, (points - points[chosen[-1]]).square().sum(1))
    return points[chosen]


def nearest_center(points: Float[Tensor, "N D"], centers: Float[Tensor, "K D"]) -> Int[Tensor, " N"]:
    """The number of the centre nearest to each point: `|x - c|^2 = |x|^2 - 2 (x c - |c|^2 / 2)`."""
    half = centers.square().sum(1) / 2
    found = [(some @ centers.T).sub_(half).argmax(1) for some in torch.split(points, POINTS_PER_CHUNK)]
    return torch.cat(found)
