"""The summary of a memory, pooled without parameters. The projection is in the head."""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

EncoderPooling = Literal["mean", "last", "final-states"]


def pool_vectors(
    vectors: Float[Tensor, "B S D"], lengths: Int[Tensor, " B"] | None, pooling: EncoderPooling
) -> Float[Tensor, "B D"]:
    """Return the `mean` of each row's vectors, the `last` vector, or the `final-states`.

    Vectors after a row's length must be zero. `final-states` are the final states of the two directions of a
    bidirectional mixer: the first half of the last vector, and the second half of the first vector. The
    result for a row of length 0 is zero.
    """
    if pooling == "mean":
        if lengths is None:
            return vectors.mean(1)
        return vectors.sum(1) / lengths.clamp(min=1)[:, None].to(vectors.dtype)
    if lengths is None:
        last = vectors[:, -1]
    else:
        index = (lengths - 1).clamp(min=0).view(-1, 1, 1).expand(-1, 1, vectors.shape[2])
        last = vectors.gather(1, index).squeeze(1)
    if pooling == "last":
        return last
    half = vectors.shape[2] // 2
    return torch.cat([last[:, :half], vectors[:, 0, half:]], 1)
