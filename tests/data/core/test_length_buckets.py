"""Batches of examples are pure functions: every example once, within the budget, with little padding."""

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from foveal.core.errors import UserError
from foveal.data.core import length_buckets as module
from foveal.data.core import length_groups
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples, RaggedArray
from foveal.data.core.length_buckets import BucketedEvalBatches, BucketedTrainBatches, fewest_cuts
from foveal.data.core.rows import Row
from foveal.data.files.aligned import read_aligned

LENGTHS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=60)


def numbered(lengths: list[int], first: int) -> RaggedArray:
    """Tokens that are all different, and none 0."""
    values = np.arange(first, first + sum(lengths), dtype=np.uint32)
    return RaggedArray(values, np.concatenate([[0], np.cumsum(lengths)]))


def pairs(lengths: list[tuple[int, int]]) -> Examples:
    sources, targets = zip(*lengths, strict=True)
    return Examples({"source": numbered([*sources], 1), "target": numbered([*targets], 1_000_000)})


def random_pairs(count: int, seed: int = 0) -> Examples:
    """Lengths like those of sentences and of their translations."""
    rng = np.random.default_rng(seed)
    sources = rng.gamma(6, 2, count).astype(int) + 1
    return pairs([*zip(sources.tolist(), np.abs(sources + rng.integers(-4, 5, count)).tolist(), strict=True)])


def check_rows(batch: ExampleBatch, examples: Examples) -> None:
    """Each row holds its example, and zeros behind it."""
    for name, column in examples.columns.items():
        assert isinstance(column, RaggedArray)
        for row, values, length in zip(batch.rows, batch.columns[name], batch.lengths[name], strict=True):
            assert np.array_equal(values[:length].numpy(), column[int(row)])
            assert not values[length:].any()


def size(batch: ExampleBatch) -> int:
    """Tokens with the padding."""
    return sum(batch.columns[name].numel() for name in batch.lengths)


@given(lengths=LENGTHS, max_tokens=st.integers(1, 100), epoch=st.integers(0, 3), seed=st.integers(0, 3))
def test_every_example_once_an_epoch_within_the_budget(
    lengths: list[tuple[int, int]], max_tokens: int, epoch: int, seed: int
) -> None:
    examples = pairs(lengths)
    for order in (
        BucketedTrainBatches(examples, max_tokens, seed),
        BucketedEvalBatches(examples, max_tokens),
    ):
        batches = [order.batch(epoch, i) for i in range(order.per_epoch)]
        for batch in batches:
            check_rows(batch, examples)
            assert size(batch) <= max_tokens or len(batch.rows) == 1
            assert batch.tokens == batch.lengths["target"].sum()
        seen = torch.cat([batch.rows for batch in batches])
        assert sorted(seen.tolist()) == [*range(len(lengths))]


@given(lengths=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=12))
def test_cuts_are_the_fewest_and_the_most_even(lengths: list[tuple[int, int]]) -> None:
    """Held to a search through all ways to cut."""
    table = np.array(lengths)
    count = len(table)
    cost = {
        (i, j): int(table[i:j].max(0).sum()) * (j - i) for i in range(count) for j in range(i + 1, count + 1)
    }
    budget = max(cost[i, i + 1] for i in range(count)) * 2
    ways = [
        [0, *(i for i in range(1, count) if chosen >> (i - 1) & 1), count]
        for chosen in range(2 ** (count - 1))
    ]
    fewest, evenest = min(
        (len(way) - 1, largest)
        for way in ways
        if (largest := max(cost[ends] for ends in pairwise(way))) <= budget
    )
    found = fewest_cuts(table, np.ones(count, np.int64), budget).tolist()
    assert (len(found) - 1, max(cost[ends] for ends in pairwise(found))) == (fewest, evenest)


@given(
    lengths=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12),
    counts=st.lists(st.integers(1, 30), min_size=12, max_size=12),
    budget=st.integers(1, 200),
)
def test_rows_of_a_group_are_cut_as_rows_one_by_one(
    lengths: list[tuple[int, int]], counts: list[int], budget: int
) -> None:
    table, repeats = np.array(lengths), np.array(counts[: len(lengths)])
    one_by_one = fewest_cuts(table.repeat(repeats, 0), np.ones(repeats.sum(), np.int64), budget)
    assert fewest_cuts(table, repeats, budget).tolist() == one_by_one.tolist()


@given(lengths=LENGTHS, size=st.integers(1, 70))
def test_order_does_not_depend_on_the_sizes_of_chunks(lengths: list[tuple[int, int]], size: int) -> None:
    def rows() -> list[list[int]]:
        batches = BucketedTrainBatches(pairs(lengths), 40, seed=1)
        return [batches.batch(2, i).rows.tolist() for i in range(batches.per_epoch)]

    whole = rows()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(length_groups, "CHUNK_ROWS", size)
        assert rows() == whole


def test_a_batch_does_not_depend_on_what_came_before() -> None:
    examples = random_pairs(500)
    one, other = BucketedTrainBatches(examples, 300, seed=3), BucketedTrainBatches(examples, 300, seed=3)
    for epoch, index in [(7, 20), (0, 0), (7, 20), (2, 5), (7, 0)]:
        one.batch(epoch, index + 1)
        assert torch.equal(other.batch(epoch, index).rows, one.batch(epoch, index).rows)


def test_batches_and_their_rows_change_with_epoch_and_seed() -> None:
    examples = random_pairs(5000)
    order, other = BucketedTrainBatches(examples, 400, seed=0), BucketedTrainBatches(examples, 400, seed=1)

    def rows(order: BucketedTrainBatches, epoch: int) -> list[frozenset[int]]:
        return [frozenset(order.batch(epoch, i).rows.tolist()) for i in range(order.per_epoch)]

    first, second, third = rows(order, 0), rows(order, 1), rows(other, 0)
    assert len(first) == len(second) == len(third)
    for again in (second, third):
        assert sum(a == b for a, b in zip(first, again, strict=True)) < 3
        assert len({*first} & {*again}) < 0.5 * len(first)  # not the same batches in another order
    widths = [order.batch(0, i).columns["source"].shape[1] for i in range(order.per_epoch)]
    assert abs(np.corrcoef(widths, np.arange(len(widths)))[0, 1]) < 0.15


def test_held_out_examples_stand_about_in_order_of_length() -> None:
    order = BucketedEvalBatches(random_pairs(300), 200)
    lengths = [order.batch(0, i).lengths["source"] for i in range(order.per_epoch)]
    assert all(one.max() < other.min() + max(module.BUCKET_WIDTHS) for one, other in pairwise(lengths))
    for index in range(order.per_epoch):
        assert torch.equal(order.batch(0, index).rows, order.batch(5, index).rows)


def test_a_long_example_is_a_batch_of_its_own() -> None:
    order = BucketedEvalBatches(pairs([(5, 5), (4000, 10), (5, 5), (6, 5)]), 40)
    assert [order.batch(0, i).rows.tolist() for i in range(order.per_epoch)] == [[0, 2, 3], [1]]


def test_other_columns_go_along() -> None:
    frames = RaggedArray.from_rows([np.full((length, 3), length, np.float16) for length in (4, 2, 3)])
    tags = RaggedArray.from_rows([np.array([1, 2], np.uint8)] * 3)
    examples = Examples({"source": frames, "tags": tags, "label": np.array([7, 8, 9], np.uint8)})
    batch = BucketedEvalBatches(examples, 1000).batch(0, 0)
    assert batch.rows.tolist() == [1, 2, 0]
    assert batch.columns["source"].shape == (3, 4, 3)
    assert batch.columns["source"].dtype == torch.float32
    assert batch.columns["source"][:, :, 0].tolist() == [[2, 2, 0, 0], [3, 3, 3, 0], [4, 4, 4, 4]]
    assert batch.columns["tags"].dtype == torch.int64
    assert batch.columns["label"].tolist() == [8, 9, 7]
    assert set(batch.lengths) == {"source", "tags"}
    assert batch.tokens == 9  # of the source, for want of a target
    assert batch.stream_starts is None


def test_a_batch_moves_with_its_columns() -> None:
    batch = BucketedTrainBatches(random_pairs(20), 100, seed=0).batch(0, 0).to(torch.device("meta"))
    assert batch.columns["source"].device.type == batch.lengths["target"].device.type == "meta"
    assert batch.rows.device.type == "cpu"


def test_no_examples_are_refused() -> None:
    with pytest.raises(UserError, match="no examples"):
        BucketedEvalBatches(Examples({"source": RaggedArray.from_rows([])}), 10)


def test_a_batch_past_the_epoch_is_a_mistake() -> None:
    for order in (
        BucketedTrainBatches(random_pairs(20), 50, seed=0),
        BucketedEvalBatches(random_pairs(20), 50),
    ):
        with pytest.raises(IndexError):
            order.batch(0, order.per_epoch)


@pytest.mark.slow
def test_little_is_padded_in_real_sentence_pairs(outside_data: Path) -> None:
    folder = outside_data / "multi30k"
    found = read_aligned(folder / "train.en.gz", folder / "train.de.gz", ("source", "target"))
    texts = [row.fields for row in found if isinstance(row, Row)]
    columns = {
        name: RaggedArray.from_rows(np.ones(len(re.findall(r"\w+|[^\w\s]", text[name]))) for text in texts)
        for name in ("source", "target")
    }
    for budget in (2048, 4096, 8192):
        order = BucketedTrainBatches(Examples(columns), budget, seed=0)
        batches = [order.batch(0, i) for i in range(order.per_epoch)]
        cells = sum(map(size, batches))
        tokens = sum(int(lengths.sum()) for batch in batches for lengths in batch.lengths.values())
        assert 1 - tokens / cells < 0.05
        assert cells / len(batches) > 0.95 * budget
