"""The laws of every encoder, as functions. `source` is (rows, S) or (rows, S, C).

All laws are checked in float64 and in evaluation mode.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from foveal.core.memory import Memory


def near(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def shape(encoder: nn.Module, source: Tensor, lengths: list[int], sizes: Sequence[int]) -> Memory:
    """Check that each row has `sizes` vectors, zeros where the mask is False, and a single segment."""
    memory, _ = encoder(source, torch.tensor(lengths))
    B, S, D = memory.vectors.shape
    assert (len(source), encoder.width) == (B, D)
    assert memory.mask.tolist() == [[place < size for place in range(S)] for size in sizes]
    assert memory.vectors[~memory.mask].eq(0).all()
    assert memory.summary.shape == (B, D)
    (segment,) = memory.segments
    assert (segment.start, segment.length) == (0, S)
    for row, size in enumerate(sizes):
        assert memory.vectors[row, :size].ne(0).any(1).all()
        assert memory.summary[row].ne(0).any() == (size > 0)
    return memory


def padding(encoder: nn.Module, source: Tensor, lengths: list[int]) -> None:
    """Check that NaN after each row's length changes no vector, summary or gradient."""
    held = torch.tensor(lengths)
    found = []
    for value in (0.0, 1e3, torch.nan):
        other = source.clone()
        for row, length in enumerate(lengths):
            other[row, length:] = value
        other.requires_grad_()
        memory, _ = encoder(other, held)
        loss = (memory.vectors**2).sum() + (memory.summary**3).sum()
        gradients = torch.autograd.grad(loss, [*encoder.parameters(), other])
        for row, length in enumerate(lengths):
            assert gradients[-1][row, length:].eq(0).all()
        found.append([memory.vectors, memory.summary, *gradients])
    assert all(part.isfinite().all() for part in found[0])
    for others in found[1:]:
        assert all(map(torch.equal, found[0], others))


def batch(encoder: nn.Module, source: Tensor, lengths: list[int]) -> None:
    """Check that a row alone, without its padding, equals the row in the batch."""
    memory, _ = encoder(source, torch.tensor(lengths))
    for row, length in enumerate(lengths):
        if length:
            alone, _ = encoder(source[row : row + 1, :length])
            size = int(memory.mask[row].sum())
            assert alone.mask.shape == (1, size)
            assert alone.mask.all()
            near(alone.vectors[0], memory.vectors[row, :size])
            near(alone.summary[0], memory.summary[row])


def every_parameter_learns(encoder: nn.Module, source: Tensor, lengths: list[int]) -> None:
    """Check that every parameter's gradient exists and is finite."""
    encoder.zero_grad()
    memory, _ = encoder(source, torch.tensor(lengths))
    (memory.vectors**3).sum().backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
