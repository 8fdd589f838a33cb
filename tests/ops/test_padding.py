"""Right padding: zeros, values after each length, and rows reversed within their length."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from foveal.ops.attention.dot_product import causal_mask
from foveal.ops.padding import last_valid, reverse_by_length, sequence_mask, zero_padding

ragged = st.lists(st.integers(0, 6), min_size=1, max_size=4)


@given(ragged)
def test_reverse_within(lengths):
    """Each row backwards within its length, the padding in its place; twice is nothing."""
    x = torch.randn(len(lengths), 6, 2)
    turned = reverse_by_length(x, torch.tensor(lengths))
    for row, other, n in zip(x, turned, lengths, strict=True):
        assert torch.equal(other[:n], row[:n].flip(0))
        assert torch.equal(other[n:], row[n:])
    assert torch.equal(reverse_by_length(turned, torch.tensor(lengths)), x)


def test_reverse_within_whole_rows():
    x = torch.randn(2, 5, 3)
    assert torch.equal(reverse_by_length(x, None), x.flip(1))
    assert torch.equal(reverse_by_length(x, torch.tensor([5, 5])), x.flip(1))


@given(ragged)
def test_zero_padding_and_after_length(lengths):
    x, first, held = torch.randn(len(lengths), 6, 2), torch.randn(len(lengths), 2), torch.tensor(lengths)
    for b, n in enumerate(lengths):
        x[b, n:] = torch.nan
    clean = zero_padding(x, held)
    assert clean.isfinite().all()
    for b, n in enumerate(lengths):
        assert torch.equal(clean[b, :n], x[b, :n])
        assert clean[b, n:].eq(0).all()
        assert torch.equal(last_valid(first, x, held)[b], x[b, n - 1] if n else first[b])
        assert sequence_mask(held, 6)[b].tolist() == [True] * n + [False] * (6 - n)
    assert zero_padding(x, None) is x


def test_causal_mask():
    for window in (0, 1, 3, 9):
        mask = causal_mask(5, window)
        for i in range(5):
            for j in range(5):
                assert mask[i, j] == (j <= i and (window == 0 or i - j < window))
