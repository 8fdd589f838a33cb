"""The laws of heads that predict labels, as functions, in float64 and in evaluation mode."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from foveal.core.memory import Memory
from foveal.laws.law import require, require_close, require_gradients, require_nothing_kept, require_shape
from foveal.ops.padding import sequence_mask

TOLERANCE = 1e-10
LENGTHS = (5, 3, 1, 4)
Run = Callable[[Memory], Tensor]
"""Returns the logits of a memory."""


def runner(head: Any, each_place: bool) -> Run:
    """Return a function from a memory to logits. A head for each place labels all places in turn."""

    def run(memory: Memory) -> Tensor:
        places = torch.arange(memory.mask.shape[1]).expand(len(memory.mask), -1)
        features, _ = head(memory, places) if each_place else head(memory)
        logits: Tensor = head.project(features)
        return logits

    return run


def ragged_memory(width: int, extra: int = 0, seed: int = 0) -> Memory:
    """Return a memory of rows of `LENGTHS`, with `extra` places behind all of them."""
    generator = torch.Generator().manual_seed(seed)
    mask = sequence_mask(torch.tensor(LENGTHS), max(LENGTHS))
    vectors = torch.randn(*mask.shape, width, dtype=torch.float64, generator=generator) * mask[:, :, None]
    summary = vectors.sum(1) / mask.sum(1, keepdim=True)
    nothing = vectors.new_zeros(len(mask), extra, width)
    return Memory(
        torch.cat([vectors, nothing], 1), torch.cat([mask, mask.new_zeros(len(mask), extra)], 1), summary
    )


def shape(run: Run, width: int, classes: int, each_place: bool) -> None:
    """Check that there is a finite logit for each class, of each row or place.

    Raises: LawBroken: there is not.
    """
    memory = ragged_memory(width)
    logits = run(memory)
    places = memory.mask.shape if each_place else memory.mask.shape[:1]
    require_shape(logits, (*places, classes), "the head gives logits")
    require(logits.isfinite().all(), "a logit is not finite")


def keeps_nothing(head: Any, run: Run, width: int) -> None:
    """Check that the head keeps nothing between two calls: the same memory has the same logits again.

    Raises: LawBroken: something is kept.
    """
    require_nothing_kept(head, lambda: [run(ragged_memory(width))], lambda: run(ragged_memory(width, seed=1)))


def padding(run: Run, width: int, each_place: bool) -> None:
    """Check that places behind all rows, which hold no vector, change no logit.

    Raises: LawBroken: padding leaks.
    """
    logits, longer = run(ragged_memory(width)), run(ragged_memory(width, extra=3))
    if each_place:
        longer = longer[:, : logits.shape[1]]
    require_close(longer, logits, TOLERANCE, "places that hold no vector change logits: padding leaks")


def batch(run: Run, width: int, each_place: bool) -> None:
    """Check that a row alone, without its padding, has the logits that it has in the batch.

    Raises: LawBroken: rows see each other, or their padding.
    """
    memory = ragged_memory(width)
    logits = run(memory)
    for row, length in enumerate(LENGTHS):
        one = memory.select_rows(torch.tensor([row]))
        alone = run(Memory(one.vectors[:, :length], one.mask[:, :length], one.summary))
        in_batch = logits[row : row + 1, :length] if each_place else logits[row : row + 1]
        require_close(alone, in_batch, TOLERANCE, "a row alone has other logits than in a batch")


def every_parameter_learns(head: Any, run: Run, width: int) -> None:
    """Check that every parameter's gradient exists and is finite.

    Raises: LawBroken: a parameter learns nothing, or its gradient is not finite.
    """
    require_gradients(head, (run(ragged_memory(width)) ** 3).sum())
