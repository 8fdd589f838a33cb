"""Batches of examples of similar lengths, which need little padding.

A batch is a pure function of (seed, epoch, index). Once the order of an epoch is computed, any batch can be
computed directly.
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
"""Widths of the buckets of the first column's lengths. The width that pads least is chosen."""


class BucketedEvalBatches:
    """Every example exactly once, roughly in order of length, in batches of at most `max_tokens` tokens.

    All ragged columns count, including their padding. A longer example is a batch of its own.
    """

    def __init__(self, examples: Examples, max_tokens: int):
        self._examples = examples
        ranks, self._slices = bucket_by_length(column_lengths(examples), max_tokens)
        self._order = np.argsort(ranks, kind="stable")
        self.per_epoch = len(self._slices)

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        """Return batch `index`. All epochs are equal."""
        return collate_examples(self._examples, self._order[self._slices[index]])


class BucketedTrainBatches:
    """Every example exactly once per epoch, in batches of at most `max_tokens` tokens.

    Tokens are counted as in `BucketedEvalBatches`. In each epoch, (seed, epoch) permutes examples of equal
    lengths, and shuffles the batches. All epochs have the same number of batches, with the same shapes.
    """

    def __init__(self, examples: Examples, max_tokens: int, seed: int):
        self._examples, self._seed = examples, seed
        self._ranks, self._slices = bucket_by_length(column_lengths(examples), max_tokens)
        self.per_epoch = len(self._slices)
        self._last: tuple[int, RowIndices] | None = None

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        index = range(self.per_epoch)[index]
        seed = derived_seed(self._seed, "batches", epoch)
        shuffled = permute_indices(np.array([index]), self.per_epoch, seed)
        return collate_examples(self._examples, self._order(epoch)[self._slices[shuffled.item()]])

    def _order(self, epoch: int) -> RowIndices:
        """Return all examples in order of length, as permuted in the epoch. The last order is cached."""
        if self._last is None or self._last[0] != epoch:
            count = len(self._ranks)
            ties = permute_indices(np.arange(count), count, derived_seed(self._seed, "examples", epoch))
            self._last = epoch, np.lexsort((ties, self._ranks))
        return self._last[1]


def collate_examples(examples: Examples, rows: RowIndices) -> ExampleBatch:
    """Return the examples at the indices `rows` (B,) as a batch."""
    columns, lengths = collate_columns(examples.columns, rows)
    scored = lengths["target" if "target" in lengths else "source"]
    return ExampleBatch(torch.from_numpy(rows), columns, lengths, scored)


def collate_columns(
    source_columns: Mapping[str, Column], rows: RowIndices
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return `rows` (B,) of the columns, and the lengths of ragged columns.

    Integers become int64, other numbers float32.
    """
    columns, lengths = {}, {}
    for name, column in source_columns.items():
        if isinstance(column, RaggedArray):
            values, counts = column.padded(rows)
            lengths[name] = torch.from_numpy(counts)
        else:
            values = column[rows]
        dtype = np.float32 if np.issubdtype(values.dtype, np.floating) else np.int64
        columns[name] = torch.from_numpy(values.astype(dtype))
    return columns, lengths


def column_lengths(examples: Examples) -> RowIndices:
    """Return the lengths of the rows in each of the K ragged columns, (rows, K)."""
    ragged = [column for column in examples.columns.values() if isinstance(column, RaggedArray)]
    return np.stack([column.lengths for column in ragged], 1)


def bucket_by_length(lengths: RowIndices, max_tokens: int) -> tuple[RowIndices, list[slice]]:
    """Return the rank of each row, and the slices of the ranked rows that form batches.

    `lengths` is (rows, K). Rows of equal lengths have equal ranks.

    Raises: UserError: there are no rows.
    """
    if not len(lengths):
        raise UserError("no examples: give rows that can be used")
    if len(lengths) == 1:
        return np.zeros(1, np.int64), [slice(0, 1)]
    candidates = [_sort_ranks(lengths, width) for width in BUCKET_WIDTHS]
    ranks = min(candidates, key=lambda ranks: _padded_tokens(lengths[np.argsort(ranks)], max_tokens))
    return ranks, fewest_cuts(lengths[np.argsort(ranks)], max_tokens)


def _sort_ranks(lengths: RowIndices, width: int) -> RowIndices:
    """Return the rank of each row in the order of lengths.

    Rows are ordered by buckets of their first length, `width` wide, then by their other lengths, then by
    their first length. The direction of each key alternates whenever the previous key increases, so neighbors
    differ little.
    """
    ranks = np.zeros(len(lengths), np.int64)
    for key in (lengths[:, 0] // width, *lengths.T[1:], lengths[:, 0]):
        longest = key.max(initial=0)
        alternating = np.where(ranks % 2, longest - key, key)
        _, ranks = np.unique(ranks * (longest + 1) + alternating, return_inverse=True)
    return ranks


def fewest_cuts(lengths: RowIndices, max_tokens: int) -> list[slice]:
    """Split ordered rows of `lengths` (N, K) into as few batches of at most `max_tokens` as possible, all
    about equally full."""
    fewest = len(_batch_ends(lengths, max_tokens))
    mean = min(max_tokens, int(lengths.sum()) // fewest)
    # The smallest budget that needs no more batches, so that the last batch is not a small remainder.
    budgets = range(mean, max_tokens + 1)
    smallest = budgets[bisect_left(budgets, -fewest, key=lambda budget: -len(_batch_ends(lengths, budget)))]
    return [slice(*ends) for ends in pairwise([0, *_batch_ends(lengths, smallest)])]


def _padded_tokens(lengths: RowIndices, max_tokens: int) -> int:
    """Return the number of tokens of all batches, including padding."""
    ends = [0, *_batch_ends(lengths, max_tokens)]
    return int((np.maximum.reduceat(lengths, ends[:-1]).sum(1) * np.diff(ends)).sum())


def _batch_ends(lengths: RowIndices, max_tokens: int) -> list[int]:
    """Return the ends of the batches. Each batch takes as many rows as fit, at least one."""
    ends: list[int] = []
    start = 0
    while start < len(lengths):
        max_rows = max(1, max_tokens // max(1, int(lengths[start].sum())))
        longest = np.maximum.accumulate(lengths[start : start + max_rows]).sum(1)
        fitting = np.searchsorted(longest * np.arange(1, len(longest) + 1), max_tokens, "right")
        start += max(1, int(fitting))
        ends.append(start)
    return ends
