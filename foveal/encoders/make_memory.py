"""The Memory of an encoder's output vectors for a sequence."""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.core.memory import Memory, Segment
from foveal.encoders.pooling import EncoderPooling, pool_vectors
from foveal.ops.padding import sequence_mask, zero_padding


def make_memory(
    vectors: Float[Tensor, "B S D"],
    lengths: Int[Tensor, " B"] | None,
    kind: Literal["tokens", "grid", "times"],
    pooling: EncoderPooling,
    grid: tuple[int, int] | None = None,
) -> Memory:
    """Return a memory with all `vectors` in one segment; `grid` is the segment's rows and columns.

    Vectors after a row's length may have any value. The memory has zeros there.
    """
    B, S, _ = vectors.shape
    vectors = zero_padding(vectors, lengths)
    if lengths is None:
        mask = torch.ones(B, S, dtype=torch.bool, device=vectors.device)
    else:
        mask = sequence_mask(lengths, S)
    return Memory(vectors, mask, pool_vectors(vectors, lengths, pooling), (Segment(0, S, kind, grid),))
