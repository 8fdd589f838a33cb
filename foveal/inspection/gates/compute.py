"""How often each gate is saturated: open or closed, so that its sigmoid hardly moves.

A gate unit is right-saturated at a step if it is above 0.9, and left-saturated if it is below 0.1. A forget
gate that is often right-saturated belongs to a cell that remembers for long (Karpathy et al. 2015).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

LEFT, RIGHT = 0.1, 0.9
"""Values below and above which a gate is saturated."""


class Saturation(NamedTuple):
    """Fractions of the steps at which each unit of a gate is saturated."""

    left: Float[Tensor, " U"]
    right: Float[Tensor, " U"]


def saturation(chunks: Iterable[Mapping[str, Float[Tensor, "_ _ _"]]]) -> dict[str, Saturation]:
    """Return the fractions for each gate by name, from the values of gates in chunks of a text."""
    steps, left, right = 0, dict[str, Tensor](), dict[str, Tensor]()
    for chunk in chunks:
        for name, values in chunk.items():
            left[name] = left.get(name, 0) + (values < LEFT).sum((0, 1)).cpu()
            right[name] = right.get(name, 0) + (values > RIGHT).sum((0, 1)).cpu()
        steps += next(iter(chunk.values()))[..., 0].numel()
    return {name: Saturation(left[name] / steps, right[name] / steps) for name in left}
