"""Memory: the vectors that an encoder passes to a head, with their mask, summary and segments."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Segment:
    """The part of a memory that comes from a single source, so that attention can be drawn over
    that source.

    Example:

        >>> words, image = layers.Segment(0, 5, "tokens"), layers.Segment(5, 12, "grid", grid=(3, 4))
        >>> vectors, mask = torch.randn(2, 17, 16), torch.ones(2, 17, dtype=torch.bool)
        >>> memory = layers.Memory(vectors, mask, vectors.mean(1), (words, image))
        >>> [segment.kind for segment in memory.segments]
        ['tokens', 'grid']
    """

    start: int
    length: int
    kind: Literal["tokens", "grid", "times"]
    grid: tuple[int, int] | None = None


@dataclass(frozen=True)
class Memory:
    """A set of vectors.

    `vectors` is zero where `mask` is False. `summary` is computed without parameters.

    Example:

        >>> vectors, mask = torch.randn(2, 7, 16), torch.ones(2, 7, dtype=torch.bool)
        >>> memory = layers.Memory(vectors, mask, summary=vectors.mean(1))
        >>> tuple(memory.select_rows(torch.tensor([1, 1, 0])).vectors.shape)
        (3, 7, 16)
    """

    vectors: Float[Tensor, "B S D"]
    mask: Bool[Tensor, "B S"]
    summary: Float[Tensor, "B D"]
    segments: tuple[Segment, ...] = ()

    def select_rows(self, which: Int[Tensor, " R"]) -> "Memory":
        """Return a memory whose row r is row `which[r]` of this memory. Rows may repeat."""
        return replace(self, vectors=self.vectors[which], mask=self.mask[which], summary=self.summary[which])


def concat_memories(memories: Sequence[Memory]) -> Memory:
    """Concatenate memories of the same rows and width along S. The summary is the mean of their summaries.

    Each part keeps its padding, so the mask of a row may be False between the parts.
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
