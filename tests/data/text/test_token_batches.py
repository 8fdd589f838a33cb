"""Orders are pure functions that cover every token as often as they say."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from foveal.core.errors import UserError
from foveal.data.core.batching import TokenBatch
from foveal.data.core.shuffle import permute_indices
from foveal.data.text.token_batches import StreamBatches, TokenEvalBatches, WindowBatches

SMALL = given(
    tokens=st.integers(2, 400),
    rows=st.integers(1, 9),
    context=st.integers(1, 30),
    epoch=st.integers(0, 3),
    seed=st.integers(0, 5),
)


def numbered(tokens: int) -> np.ndarray:
    """Tokens that say where they stand."""
    return np.arange(tokens, dtype=np.uint32)


def check_shift(batch: TokenBatch) -> None:
    lengths = [batch.inputs.shape[1]] * len(batch.inputs) if batch.lengths is None else batch.lengths.tolist()
    for row_in, row_out, length in zip(batch.inputs, batch.targets, lengths, strict=True):
        assert (row_out[:length] == row_in[:length] + 1).all()
        assert not row_in[length:].any()
        assert not row_out[length:].any()


@SMALL
@pytest.mark.parametrize("micro_batches", [1, 3])
def test_streams_go_on_where_they_ended(
    micro_batches: int, tokens: int, rows: int, context: int, epoch: int, seed: int
) -> None:
    if tokens <= context * micro_batches:
        return
    streams = StreamBatches(numbered(tokens), rows, context, seed, micro_batches)
    batches = [streams.batch(epoch, i) for i in range(streams.per_epoch)]
    for index, batch in enumerate(batches):
        check_shift(batch)
        assert batch.inputs.shape == (streams.rows, context)
        assert batch.stream_starts is not None
        assert batch.stream_starts.tolist() == [index < micro_batches] * streams.rows
        assert batch.tokens == streams.rows * context
    for slot in range(micro_batches):
        inputs = torch.cat([batch.inputs for batch in batches[slot::micro_batches]], 1)
        assert (inputs.diff(dim=1) == 1).all()
    seen = torch.cat([batch.targets.flatten() for batch in batches])
    assert len(seen.unique()) == len(seen)  # once each ...
    assert int(seen.max() - seen.min()) == len(seen) - 1  # ... without a hole between the streams ...
    assert (
        tokens - 1 - len(seen) < streams.rows * micro_batches * context + context
    )  # ... and little left over
    if epoch == 0:
        assert int(batches[0].inputs[0, 0]) == 0


def test_too_few_tokens_for_the_slots_are_refused() -> None:
    with pytest.raises(UserError, match=r"too few for 3 micro-batches.*training\.grad_accumulation"):
        StreamBatches(numbered(30), rows=4, context=10, seed=0, micro_batches=3)


def test_streams_begin_elsewhere_in_each_epoch() -> None:
    streams = StreamBatches(numbered(1001), 4, 25, seed=0)  # a text that the chunks would fill exactly
    starts = {int(streams.batch(epoch, 0).inputs[0, 0]) % 25 for epoch in range(200)}
    assert len(starts) == 25


@SMALL
def test_every_window_once_an_epoch(tokens: int, rows: int, context: int, epoch: int, seed: int) -> None:
    if tokens <= context:
        return
    windows = WindowBatches(numbered(tokens), rows, context, seed)
    batches = [windows.batch(epoch, i) for i in range(windows.per_epoch)]
    for batch in batches:
        check_shift(batch)
        assert batch.stream_starts is None
        assert batch.inputs.shape[1] == context
    sizes = {len(batch.inputs) for batch in batches}
    assert max(sizes) <= rows
    assert max(sizes) - min(sizes) <= 1
    seen = torch.cat([batch.targets.flatten() for batch in batches])
    assert len(seen.unique()) == len(seen)
    assert int(seen.max() - seen.min()) == len(seen) - 1
    assert tokens - 1 - len(seen) < 2 * context


def test_windows_of_a_text_are_in_random_order_that_changes() -> None:
    windows = WindowBatches(numbered(10_000), 100, 10, seed=0)
    orders = [
        torch.cat([windows.batch(epoch, i).inputs[:, 0] for i in range(windows.per_epoch)]) // 10
        for epoch in range(2)
    ]
    for order in orders:
        correlation = np.corrcoef(order.numpy(), np.arange(len(order)))[0, 1]
        assert abs(correlation) < 0.15
    assert (orders[0] != orders[1]).float().mean() > 0.9
    phases = {int(windows.batch(epoch, 0).inputs[0, 0]) % 10 for epoch in range(100)}
    assert phases == set(range(10))


@pytest.mark.parametrize("order", [StreamBatches, WindowBatches])
def test_a_batch_does_not_depend_on_what_came_before(
    order: type[StreamBatches] | type[WindowBatches],
) -> None:
    tokens = np.random.default_rng(0).integers(0, 99, 5000).astype(np.uint8)
    one, other = order(tokens, 4, 16, seed=3), order(tokens, 4, 16, seed=3)
    for epoch, index in [(7, 20), (0, 0), (7, 20), (2, 5)]:
        one.batch(epoch, index + 1)
        expected, found = other.batch(epoch, index), one.batch(epoch, index)
        assert torch.equal(expected.inputs, found.inputs)
        assert torch.equal(expected.targets, found.targets)
    different = order(tokens, 4, 16, seed=4)
    assert not torch.equal(different.batch(1, 0).inputs, one.batch(1, 0).inputs)


@given(tokens=st.integers(2, 400), rows=st.integers(1, 9), context=st.integers(1, 500))
def test_held_out_scores_every_token_but_the_first_once(tokens: int, rows: int, context: int) -> None:
    held_out = TokenEvalBatches(numbered(tokens), rows, context)
    scored: list[int] = []
    last: dict[int, int] = {}
    for index in range(held_out.per_epoch):
        batch = held_out.batch(0, index)
        check_shift(batch)
        assert batch.stream_starts is not None
        assert batch.stream_starts.tolist() == [index == 0] * held_out.rows
        lengths = (
            [batch.targets.shape[1]] * held_out.rows if batch.lengths is None else batch.lengths.tolist()
        )
        assert sum(lengths) == batch.tokens
        assert max(lengths) == batch.inputs.shape[1] <= context
        for row, length in enumerate(lengths):
            if length and index:
                assert int(batch.inputs[row, 0]) == last[row]  # contiguous
            scored += batch.targets[row, :length].tolist()
            last[row] = int(batch.targets[row, length - 1]) if length else -1
    assert sorted(scored) == [*range(1, tokens)]


def test_a_small_held_out_text_has_fewer_rows() -> None:
    assert TokenEvalBatches(numbered(100), rows=32, context=20).rows == 4
    assert TokenEvalBatches(numbered(10), rows=32, context=20).rows == 1


@pytest.mark.parametrize("size", range(1, 301))
def test_the_permutation_is_one(size: int) -> None:
    assert sorted(permute_indices(np.arange(size), size, seed=size).tolist()) == [*range(size)]


@pytest.mark.parametrize("size", [2**16, 2**16 + 1, 10**6, 10**12 + 39, 2**61 + 1])
def test_the_permutation_of_many_has_no_two_alike(size: int) -> None:
    rng = np.random.default_rng(0)
    numbers = np.unique(rng.integers(0, size, 50_000))
    result = permute_indices(numbers, size, seed=1)
    assert len(np.unique(result)) == len(numbers)
    assert result.min() >= 0
    assert result.max() < size
    assert not np.array_equal(result, permute_indices(numbers, size, seed=2))


def test_every_place_is_equally_likely() -> None:
    """A chi-squared test at p = 1e-4: 9 degrees of freedom, 33.7."""
    counts = Counter(int(permute_indices(np.array([3]), 10, seed)[0]) for seed in range(3000))
    assert sum((counts[place] - 300) ** 2 / 300 for place in range(10)) < 33.7


@pytest.mark.parametrize("order", [StreamBatches, WindowBatches])
def test_a_text_shorter_than_the_context_is_refused(order: type[StreamBatches] | type[WindowBatches]) -> None:
    order(numbered(129), 4, 128, seed=0)
    with pytest.raises(
        UserError, match=r"has 128 tokens, and data\.context_length=128 needs.*set data\.context_length=64"
    ):
        order(numbered(128), 4, 128, seed=0)
    with pytest.raises(UserError, match=r"give more text$"):
        order(numbered(1), 4, 128, seed=0)


def test_a_held_out_text_of_one_token_is_refused() -> None:
    with pytest.raises(UserError, match=r"has 1 token\(s\)"):
        TokenEvalBatches(numbered(1), 4, 128)


def test_a_batch_past_the_epoch_is_a_mistake() -> None:
    with pytest.raises(IndexError):
        WindowBatches(numbered(100), 4, 10, seed=0).batch(0, 99)
