"""Batches of examples of similar lengths, which need little padding.

A batch is a pure function of (seed, epoch, index), and is computed directly: no order of rows is stored.
"""

from bisect import bisect_left
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.runtime import derived_seed
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Column, Examples, RaggedArray, RowIndices
from foveal.data.core.length_groups import LengthGroups
from foveal.data.core.shuffle import permute_in_groups, permute_indices

BUCKET_WIDTHS = (1, 2, 4, 8)
"""Widths of the buckets of the first column's lengths. The width that pads least is chosen."""


class RowsByLength:
    """The rows of examples in an order of lengths in which neighbors differ little, cut into batches.

    Batch i has the rows at `ends[i]` to `ends[i + 1]` of the order. Rows of equal lengths are in the order of
    the data, or in that of a permutation.
    """

    def __init__(self, examples: Examples, max_tokens: int):
        self._groups = LengthGroups.of(examples)
        self._order, self.ends = bucket_by_length(self._groups, max_tokens)
        self._group_ends = self._groups.counts[self._order].cumsum()

    def rows(self, index: int, seed: int | None = None) -> RowIndices:
        """Return the rows of batch `index`. A `seed` permutes rows of equal lengths."""
        places = np.arange(self.ends[index], self.ends[index + 1])
        ranks = np.searchsorted(self._group_ends, places, "right")
        groups = self._order[ranks]
        starts, counts = (
            self._groups.starts[groups],
            self._groups.starts[groups + 1] - self._groups.starts[groups],
        )
        inside = places - (self._group_ends[ranks] - counts)
        if seed is not None:
            inside = permute_in_groups(inside, counts, groups, seed)
        return self._groups.rows[starts + inside].astype(np.int64)


class BucketedEvalBatches:
    """Every example exactly once, roughly in order of length, in batches of at most `max_tokens` tokens.

    All ragged columns count, including their padding. A longer example is a batch of its own.
    """

    def __init__(self, examples: Examples, max_tokens: int):
        self._examples = examples
        self._order = RowsByLength(examples, max_tokens)
        self.per_epoch = len(self._order.ends) - 1

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        """Return batch `index`. All epochs are equal."""
        return collate_examples(self._examples, self._order.rows(range(self.per_epoch)[index]))


class BucketedTrainBatches:
    """Every example exactly once per epoch, in batches of at most `max_tokens` tokens.

    Tokens are counted as in `BucketedEvalBatches`. In each epoch, (seed, epoch) permutes examples of equal
    lengths, and shuffles the batches. All epochs have the same number of batches, with the same shapes.
    """

    def __init__(self, examples: Examples, max_tokens: int, seed: int):
        self._examples, self._seed = examples, seed
        self._order = RowsByLength(examples, max_tokens)
        self.per_epoch = len(self._order.ends) - 1

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        index = range(self.per_epoch)[index]
        seed = derived_seed(self._seed, "batches", epoch)
        shuffled = permute_indices(np.array([index]), self.per_epoch, seed)
        rows = self._order.rows(shuffled.item(), derived_seed(self._seed, "examples", epoch))
        return collate_examples(self._examples, rows)


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


def bucket_by_length(groups: LengthGroups, max_tokens: int) -> tuple[RowIndices, RowIndices]:
    """Return the order of the groups, and the ends of the batches of their rows, from 0 on.

    Raises: UserError: there are no rows.
    """
    if not len(groups.rows):
        raise UserError("no examples: give rows that can be used")
    orders = [np.argsort(_sort_ranks(groups.lengths, width)) for width in BUCKET_WIDTHS]
    order = min(
        orders, key=lambda order: _padded_tokens(groups.lengths[order], groups.counts[order], max_tokens)
    )
    return order, fewest_cuts(groups.lengths[order], groups.counts[order], max_tokens)


def _sort_ranks(lengths: RowIndices, width: int) -> RowIndices:
    """Return the rank of each group in the order of lengths.

    Groups are ordered by buckets of their first length, `width` wide, then by their other lengths, then by
    their first length. The direction of each key alternates whenever the previous key increases, so neighbors
    differ little.
    """
    ranks = np.zeros(len(lengths), np.int64)
    for key in (lengths[:, 0] // width, *lengths.T[1:], lengths[:, 0]):
        longest = key.max(initial=0)
        alternating = np.where(ranks % 2, longest - key, key)
        _, ranks = np.unique(ranks * (longest + 1) + alternating, return_inverse=True)
    return ranks


def fewest_cuts(lengths: RowIndices, counts: RowIndices, max_tokens: int) -> RowIndices:
    """Return the ends, from 0 on, of as few batches of at most `max_tokens` as possible, all about equally
    full.

    The rows are ordered: `counts[g]` (G,) rows of `lengths[g]` (G, K), group after group.
    """
    fewest = len(_batch_ends(lengths, counts, max_tokens))
    mean = min(max_tokens, int(lengths.sum(1) @ counts) // fewest)
    # The smallest budget that needs no more batches, so that the last batch is not a small remainder.
    budgets = range(mean, max_tokens + 1)

    def negative_count(budget: int) -> int:
        return -len(_batch_ends(lengths, counts, budget))

    smallest = budgets[bisect_left(budgets, -fewest, key=negative_count)]
    return np.append(0, _batch_ends(lengths, counts, smallest))


def _padded_tokens(lengths: RowIndices, counts: RowIndices, max_tokens: int) -> int:
    """Return the number of tokens of all batches, including padding."""
    ends = np.append(0, _batch_ends(lengths, counts, max_tokens))
    group_ends = counts.cumsum()
    first = np.searchsorted(group_ends, ends[:-1], "right")
    last = np.searchsorted(group_ends, ends[1:] - 1, "right")
    ranges = np.stack([first, last + 1], 1).flatten()  # every other range is that of a batch
    longest = np.maximum.reduceat(np.append(lengths, lengths[-1:], 0), ranges)[::2]
    return int((longest.sum(1) * np.diff(ends)).sum())


def _batch_ends(lengths: RowIndices, counts: RowIndices, max_tokens: int) -> RowIndices:
    """Return the ends of the batches. Each batch takes as many rows as fit, at least one."""
    ends: list[RowIndices] = []
    group, left, end = 0, int(counts[0]), 0
    while True:
        max_rows = max(1, max_tokens // max(1, int(lengths[group].sum())))
        if full := left // max_rows:  # batches of rows of this group alone
            ends.append(end + max_rows * np.arange(1, full + 1))
            end, left = end + full * max_rows, left % max_rows
        elif left:
            longest = np.maximum.accumulate(lengths[group : group + max_rows]).sum(1)
            rows = np.cumsum(counts[group : group + max_rows]) - counts[group] + left
            most = max_tokens // np.maximum(longest, 1)
            too_many = np.flatnonzero(most < rows)
            fitting = int(rows[-1])
            if len(too_many):
                index = int(too_many[0])
                fitting = max(int(most[index]), int(rows[index - 1]) if index else 1)
            fitting = min(fitting, max_rows)
            end += fitting
            ends.append(np.array([end]))
            last = int(np.searchsorted(rows, fitting))  # the group in which the batch ends
            group, left = group + last, int(rows[last]) - fitting
        if not left:
            group += 1
            if group == len(counts):
                return np.concatenate(ends)
            left = int(counts[group])
