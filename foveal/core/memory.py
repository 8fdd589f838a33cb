"""Memory: what an encoder hands to a head, a set of vectors and what is known about them."""

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor


@dataclass(frozen=True)
class Segment:
    """One part of a memory, so that a picture can be drawn over its source."""

    start: int
    length: int
    kind: Literal["tokens", "grid", "times"]
    grid: tuple[int, int] | None = None


@dataclass(frozen=True)
class Memory:
    """A set of vectors. `vectors` is zero where `mask` is False; `summary` is made without parameters."""

    vectors: Float[Tensor, "B S D"]
    mask: Bool[Tensor, "B S"]
    summary: Float[Tensor, "B D"]
    segments: tuple[Segment, ...] = ()
