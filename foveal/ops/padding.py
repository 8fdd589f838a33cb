"""Right padding. Zeros are inserted with `where`, because multiplying by zero keeps NaN."""

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor


def sequence_mask(lengths: Int[Tensor, " B"], size: int) -> Bool[Tensor, "B T"]:
    """Return True at the positions before each row's length."""
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def zero_padding(x: Num[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None) -> Num[Tensor, "B T D"]:
    """Return `x` with zeros from each row's length on. If `lengths` is None, return `x`."""
    if lengths is None:
        return x
    return torch.where(sequence_mask(lengths, x.shape[1])[:, :, None], x, x.new_zeros(()))


def last_valid(
    initial: Float[Tensor, "B D"], y: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"]
) -> Float[Tensor, "B D"]:
    """Return the value after each row's length: `y[b, lengths[b] - 1]`, or `initial[b]` where the length is
    0."""
    values = torch.cat([initial[:, None], y.to(initial.dtype)], 1)
    return values.gather(1, lengths.view(-1, 1, 1).expand(-1, 1, values.shape[2])).squeeze(1)


def reverse_by_length(x: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None) -> Float[Tensor, "B T D"]:
    """Reverse each row within its length. The padding stays in place.

    A bidirectional mixer is two forward mixers. One of them runs between two such reversals.
    """
    if lengths is None:
        return x.flip(1)
    position = torch.arange(x.shape[1], device=x.device).expand(x.shape[0], -1)
    source = torch.where(sequence_mask(lengths, x.shape[1]), lengths[:, None] - 1 - position, position)
    return x.gather(1, source[:, :, None].expand_as(x))
