"""Memory: what an encoder hands to a head, a set of vectors and what is known about them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
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

    def select_rows(self, which: Int[Tensor, " R"]) -> "Memory":
        """Row `which[r]` as row r, as often as it is asked for."""
        return replace(self, vectors=self.vectors[which], mask=self.mask[which], summary=self.summary[which])


def concat_memories(memories: Sequence[Memory]) -> Memory:
    """Memories of the same rows and width, side by side along S; the summary is the mean of theirs.

    Rows shorter than others leave holes in the mask behind each part.
    """
    segments, start = [], 0
    for memory in memories:
        segments += [replace(segment, start=start + segment.start) for segment in memory.segments]
        start += memory.mask.shape[1]
    return Memory(
        torch.cat([memory.vectors for memory in memories], 1),
        torch.cat([memory.mask for memory in memories], 1),
        torch.stack([memory.summary for memory in memories]).mean(0),
        tuple(segments),
    )
