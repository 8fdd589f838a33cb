"""The laws of every encoder, as functions, in float64 and in evaluation mode.

`source` is (rows, S) tokens, or (rows, S, ...) numbers; images are (rows, C, H, W) without lengths.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.laws.law import (
    require,
    require_close,
    require_equal,
    require_gradients,
    require_nothing_kept,
    require_shape,
)

TOLERANCE = 1e-10


def near(a: Tensor, b: Tensor, problem: str = "two results differ") -> None:
    """Check that two results are equal up to rounding.

    Raises: LawBroken: they differ.
    """
    require_close(a, b, TOLERANCE, problem)


def shape(encoder: Any, source: Tensor, lengths: list[int] | None, sizes: Sequence[int] | None) -> Memory:
    """Check that each row has `sizes` vectors, zeros where the mask is False, and a single segment.

    Without `sizes`, a row of length 0 has none, and all others have some.

    Raises: LawBroken: the memory is another.
    """
    memory, _ = encoder(source, None if lengths is None else torch.tensor(lengths))
    B, S, D = memory.vectors.shape
    require_shape(memory.vectors, (len(source), S, encoder.width), "the memory has vectors")
    require_shape(memory.mask, (B, S), "the memory has a mask")
    if sizes is None:
        sizes = memory.mask.sum(1).tolist()
        for length, size in zip(lengths or [1] * B, sizes, strict=True):
            require((length > 0) == (size > 0), f"a source of length {length} has {size} vectors")
    rows = [[place < size for place in range(S)] for size in sizes]
    require(memory.mask.tolist() == rows, "the mask is not True for the vectors of each row alone")
    require(memory.vectors[~memory.mask].eq(0).all(), "the memory's vectors behind a row are not zero")
    require_shape(memory.summary, (B, D), "the memory has a summary")
    spans = [(segment.start, segment.length) for segment in memory.segments]
    require(spans == [(0, S)], f"the memory has the segments {spans}, not one with all vectors")
    for row, size in enumerate(sizes):
        require(memory.vectors[row, :size].ne(0).any(1).all(), "a vector of the memory is zero")
        is_zero = bool(memory.summary[row].eq(0).all())
        require(is_zero == (size == 0), "a summary is zero, or that of no vectors is not")
    return memory


def keeps_nothing(encoder: nn.Module, source: Tensor, lengths: list[int] | None) -> None:
    """Check that the encoder keeps nothing between two calls: the same source has the same memory again.

    Raises: LawBroken: something is kept.
    """

    def call(rows: Tensor) -> tuple[Tensor, Tensor]:
        memory, _ = encoder(source[rows], None if lengths is None else torch.tensor(lengths)[rows])
        return memory.vectors, memory.summary

    rows = torch.arange(len(source))
    require_nothing_kept(encoder, lambda: call(rows), lambda: call(rows.flip(0)))


def padding(encoder: nn.Module, source: Tensor, lengths: list[int]) -> None:
    """Check that what stands after each row's length (numbers, NaN, or tokens) changes no vector, summary or
    gradient.

    Raises: LawBroken: padding leaks.
    """
    held = torch.tensor(lengths)
    is_numbers = source.is_floating_point()
    results = []
    for value in (0.0, 1e3, torch.nan) if is_numbers else (0, 1, int(source.max())):
        other = source.clone()
        for row, length in enumerate(lengths):
            other[row, length:] = value
        inputs = [other.requires_grad_()] if is_numbers else []
        memory, _ = encoder(other, held)
        loss = (memory.vectors**2).sum() + (memory.summary**3).sum()
        wanted = [*(each for each in encoder.parameters() if each.requires_grad), *inputs]
        gradients = (
            torch.autograd.grad(loss, wanted, allow_unused=True, materialize_grads=True)
            if loss.requires_grad
            else tuple(map(torch.zeros_like, wanted))
        )
        for row, length in enumerate(lengths):
            for gradient in gradients[len(gradients) - len(inputs) :]:
                behind = gradient[row, length:]
                require(behind.eq(0).all(), "a gradient flows into the padding: padding leaks")
        results.append([memory.vectors, memory.summary, *gradients])
    require(all(part.isfinite().all() for part in results[0]), "a result of a padded batch is not finite")
    for others in results[1:]:
        for one, other in zip(results[0], others, strict=True):
            require_equal(other, one, "what stands in the padding changes results: padding leaks")


def batch(encoder: nn.Module, source: Tensor, lengths: list[int] | None) -> None:
    """Check that a row alone, without its padding, equals the row in the batch.

    Raises: LawBroken: rows see each other, or their padding.
    """
    memory, _ = encoder(source, None if lengths is None else torch.tensor(lengths))
    for row in range(len(source)):
        length = source.shape[1] if lengths is None else lengths[row]
        if length:
            alone, _ = encoder(
                source[row : row + 1, :length], None if lengths is None else torch.tensor([length])
            )
            size = int(memory.mask[row].sum())
            require_shape(alone.mask, (1, size), "a row alone has a memory")
            require(alone.mask.all(), "a row alone has vectors whose mask is False")
            problem = "a row alone has another memory than in a batch"
            near(alone.vectors[0], memory.vectors[row, :size], problem)
            near(alone.summary[0], memory.summary[row], problem)


def every_parameter_learns(encoder: nn.Module, source: Tensor, lengths: list[int] | None) -> None:
    """Check that every parameter's gradient exists and is finite.

    Raises: LawBroken: a parameter learns nothing, or its gradient is not finite.
    """
    memory, _ = encoder(source, None if lengths is None else torch.tensor(lengths))
    require_gradients(encoder, (memory.vectors**3).sum())
