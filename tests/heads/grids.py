"""A memory of a grid."""

from torch import Tensor

from foveal.core.memory import Memory
from foveal.encoders.make_memory import remember


def memory_of(maps: Tensor) -> Memory:
    """Of the places of `maps` (B, D, h, w), row by row."""
    h, w = maps.shape[2:]
    return remember(maps.flatten(2).mT, None, "grid", "mean", (h, w))
