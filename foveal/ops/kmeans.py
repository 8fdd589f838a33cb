"""K-means clustering."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

POINTS_PER_CHUNK = 1 << 12
"""Points whose products with all centers are stored at a time."""


def kmeans(points: Float[Tensor, "N D"], count: int, rounds: int) -> Float[Tensor, "K D"]:
    """Return K = `count` centers that approximately minimize `sum_n min_k |x_n - c_k|^2` (Lloyd 1982),
    initialized by k-means++.

    In each round, every center moves to the mean of its nearest points. A center without points does not
    move. Random choices use torch's generator. N must be at least K.
    """
    centers = kmeans_plus_plus(points, count)
    for _ in range(rounds):
        labels = nearest_center(points, centers)
        sums = torch.zeros_like(centers).index_add_(0, labels, points)
        sizes = labels.bincount(minlength=count)[:, None]
        centers = torch.where(sizes > 0, sums / sizes.clamp(min=1), centers)
    return centers


def kmeans_plus_plus(points: Float[Tensor, "N D"], count: int) -> Float[Tensor, "K D"]:
    """Return `count` of the points as initial centers (Arthur and Vassilvitskii 2007, k-means++).

    Each next point is chosen with a probability proportional to its squared distance from the nearest chosen
    point.
    """
    indices = [int(torch.randint(len(points), ()))]
    distances = (points - points[indices[0]]).square().sum(1)
    for _ in range(count - 1):
        cumulative = distances.cumsum(0, dtype=torch.float64)
        target = torch.rand((), dtype=torch.float64).item() * cumulative[-1]
        indices.append(min(int(torch.searchsorted(cumulative, target, right=True)), len(points) - 1))
        distances = torch.minimum(distances, (points - points[indices[-1]]).square().sum(1))
    return points[indices]


def nearest_center(points: Float[Tensor, "N D"], centers: Float[Tensor, "K D"]) -> Int[Tensor, " N"]:
    """Return the index of the center nearest to each point: `|x - c|^2 = |x|^2 - 2 (x c - |c|^2 / 2)`."""
    half = centers.square().sum(1) / 2
    indices = [(chunk @ centers.T).sub_(half).argmax(1) for chunk in torch.split(points, POINTS_PER_CHUNK)]
    return torch.cat(indices)
