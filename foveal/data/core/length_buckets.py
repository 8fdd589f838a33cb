"""Which examples are in batch `index` of `epoch`: rows of near lengths stand together, so little is padded.

A pure function of (seed, epoch, index); once an epoch's order is made, seeking costs nothing.
"""

from bisect import bisect_left
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.runtime import derived_seed
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Column, Examples, RaggedArray, RowIndices
from foveal.data.core.shuffle import permute_indices

BUCKET_WIDTHS = (1, 2, 4, 8)
"""Lengths of the first column that are taken as one: the way that pads least is chosen."""


class BucketedEvalBatches:
    """Every example exactly once, about in order of length, in batches of at most `max_tokens` tokens.

    Tokens are those of all ragged columns, padding counted. A longer example is a batch of its own.
    """

    def __init__(self, examples: Examples, max_tokens: int):
        self._examples = examples
        places, self._cuts = bucket_by_length(column_lengths(examples), max_tokens)
        self._order = np.argsort(places, kind="stable")
        self.per_epoch = len(self._cuts)

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        """All epochs are alike."""
        return collate_examples(self._examples, self._order[self._cuts[index]])


class BucketedTrainBatches:
    """Every example exactly once an epoch, in batches of at most `max_tokens` tokens like
    BucketedEvalBatches'.

    By (seed, epoch) examples of equal lengths take each other's places, and so do the batches. All epochs
    have as many batches, of the same shapes.
    """

    def __init__(self, examples: Examples, max_tokens: int, seed: int):
        self._examples, self._seed = examples, seed
        self._places, self._cuts = bucket_by_length(column_lengths(examples), max_tokens)
        self.per_epoch = len(self._cuts)
        self._last: tuple[int, RowIndices] | None = None

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        index = range(self.per_epoch)[index]
        turn = permute_indices(np.array([index]), self.per_epoch, derived_seed(self._seed, "batches", epoch))
        return collate_examples(self._examples, self._order(epoch)[self._cuts[turn.item()]])

    def _order(self, epoch: int) -> RowIndices:
        """All examples in the epoch's order of length; that of the last epoch is kept."""
        if self._last is None or self._last[0] != epoch:
            count = len(self._places)
            chance = permute_indices(np.arange(count), count, derived_seed(self._seed, "examples", epoch))
            self._last = epoch, np.lexsort((chance, self._places))
        return self._last[1]


def collate_examples(examples: Examples, rows: RowIndices) -> ExampleBatch:
    """The examples `rows` (B,) as a batch."""
    columns, lengths = collate_columns(examples.columns, rows)
    scored = lengths["target" if "target" in lengths else "source"]
    return ExampleBatch(torch.from_numpy(rows), columns, lengths, int(scored.sum()))


def collate_columns(
    source_columns: Mapping[str, Column], rows: RowIndices
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The `rows` (B,) of columns: whole numbers as int64, others as float32; the lengths of ragged ones."""
    columns, lengths = {}, {}
    for name, column in source_columns.items():
        if isinstance(column, RaggedArray):
            values, counts = column.padded(rows)
            lengths[name] = torch.from_numpy(counts)
        else:
            values = column[rows]
        kind = np.float32 if np.issubdtype(values.dtype, np.floating) else np.int64
        columns[name] = torch.from_numpy(values.astype(kind))
    return columns, lengths


def column_lengths(examples: Examples) -> RowIndices:
    """(rows, K): the lengths in each of the ragged columns."""
    ragged = [column for column in examples.columns.values() if isinstance(column, RaggedArray)]
    return np.stack([column.lengths for column in ragged], 1)


def bucket_by_length(lengths: RowIndices, max_tokens: int) -> tuple[RowIndices, list[slice]]:
    """Each row's place in the order of `lengths` (rows, K), equal ones in the same; and the batches in it."""
    if not len(lengths):
        raise UserError(
            "no examples: give more rows, or keep less of them back (data.valid_fraction, data.test_fraction)"
        )
    ways = [_sort_ranks(lengths, run) for run in BUCKET_WIDTHS]
    places = min(ways, key=lambda places: _padded_tokens(lengths[np.argsort(places)], max_tokens))
    return places, fewest_cuts(lengths[np.argsort(places)], max_tokens)


def _sort_ranks(lengths: RowIndices, run: int) -> RowIndices:
    """Rows are ordered by the first of their lengths in runs of `run`, then by the others, then within runs.

    The second goes up and down by turns as the first grows, and so on, so that neighbours differ little.
    """
    places = np.zeros(len(lengths), np.int64)
    for part in (lengths[:, 0] // run, *lengths.T[1:], lengths[:, 0]):
        longest = part.max(initial=0)
        turning = np.where(places % 2, longest - part, part)
        _, places = np.unique(places * (longest + 1) + turning, return_inverse=True)
    return places


def fewest_cuts(lengths: RowIndices, max_tokens: int) -> list[slice]:
    """Cut ordered rows of `lengths` (N, K) into the fewest batches of at most `max_tokens`, all about
    full."""
    fewest = len(_batch_ends(lengths, max_tokens))
    mean = min(max_tokens, int(lengths.sum()) // fewest)
    # The smallest budget that needs no more batches, so that the last one is no small rest.
    budgets = range(mean, max_tokens + 1)
    evenly = budgets[bisect_left(budgets, -fewest, key=lambda enough: -len(_batch_ends(lengths, enough)))]
    return [slice(*ends) for ends in pairwise([0, *_batch_ends(lengths, evenly)])]


def _padded_tokens(lengths: RowIndices, max_tokens: int) -> int:
    """Tokens and padding of all batches."""
    ends = [0, *_batch_ends(lengths, max_tokens)]
    return int((np.maximum.reduceat(lengths, ends[:-1]).sum(1) * np.diff(ends)).sum())


def _batch_ends(lengths: RowIndices, max_tokens: int) -> list[int]:
    """Where batches end, each taking as many of the rows as it holds, and one at least."""
    ends: list[int] = []
    start = 0
    while start < len(lengths):
        most = max(1, max_tokens // max(1, int(lengths[start].sum())))
        longest = np.maximum.accumulate(lengths[start : start + most]).sum(1)
        fit = np.searchsorted(longest * np.arange(1, len(longest) + 1), max_tokens, "right")
        start += max(1, int(fit))
        ends.append(start)
    return ends
