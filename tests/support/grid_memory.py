"""A memory of a grid."""

from torch import Tensor

from foveal.core.memory import Memory
from foveal.encoders.make_memory import make_memory


def memory_of(maps: Tensor) -> Memory:
    """Return a memory of the positions of `maps` (B, D, h, w), row by row."""
    h, w = maps.shape[2:]
    return make_memory(maps.flatten(2).mT, None, "grid", "mean", (h, w))
