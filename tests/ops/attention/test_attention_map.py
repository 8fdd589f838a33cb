"""Recomputed weights equal the kernel's: with the identity as values its outputs are the weights."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from foveal.ops.attention import attention_map
from foveal.ops.attention.attention_map import AttentionMap, weights_tile
from foveal.ops.attention.dot_product import attention
from foveal.ops.jit.dispatch import record_paths

B, H, K = 2, 4, 8


def kernel_weights(attend, q, k):
    """The weights of a kernel, K keys at a time, since values are as wide as the heads."""
    S = k.shape[2]
    identity = torch.eye(S, -(-S // K) * K, dtype=q.dtype).expand(B, k.shape[1], S, -1)
    columns = [attend(q, k, v.contiguous()) for v in identity.split(K, 3)]
    return torch.cat(columns, 3)[..., :S].float()


def inputs(T, S, heads_of_keys=H, dtype=torch.float32):
    generator = torch.Generator().manual_seed(T)
    return (
        (2 * torch.randn(B, H, T, K, generator=generator)).to(dtype),
        torch.randn(B, heads_of_keys, S, K, generator=generator).to(dtype),
    )


def mask_of_keys(S):
    """The first row sees all keys but the last two, the second none."""
    visible = torch.ones(B, 1, 1, S, dtype=torch.bool)
    visible[0, ..., -2:] = False
    visible[1] = False
    return visible


def mask_of_pairs(T, S):
    visible = torch.rand(B, 1, T, S, generator=torch.Generator().manual_seed(1)) < 0.5
    visible[:, :, 1] = False
    return visible


CASES = {
    "all": (9, 9, None, False, 0, "fused"),
    "cross": (5, 11, None, False, 0, "fused"),
    "keys": (9, 9, mask_of_keys(9), False, 0, "fused"),
    "pairs": (6, 9, mask_of_pairs(6, 9), False, 0, "fused"),
    "causal": (9, 9, None, True, 0, "fused"),
    "last": (4, 9, None, True, 0, "fused"),
    "window": (9, 9, None, True, 3, "fused"),
    "window and keys": (9, 9, mask_of_keys(9), True, 3, "fused"),
    "causal and keys": (9, 9, mask_of_keys(9), True, 0, "keys"),
    "causal and pairs": (6, 9, mask_of_pairs(6, 9), True, 4, "fused"),
    "one": (1, 9, None, True, 4, "fused"),
    "chunks": (150, 150, mask_of_keys(150), True, 20, "chunks"),
    "short": (250, 250, mask_of_keys(250), True, 0, "short"),
    "short, all": (250, 250, None, False, 0, "short"),
}


@pytest.mark.parametrize("case", list(CASES))
def test_weights_are_those_of_our_kernels(case):
    T, S, visible, causal, window, path = CASES[case]
    q, k = inputs(T, S)
    with record_paths() as paths:
        expected = kernel_weights(lambda q, k, v: attention(q, k, v, visible, causal, window), q, k)
    if path != "short" or attention_map_has_short():
        assert set(paths) == {f"attention:{path}"}
    weights = AttentionMap(q, k, visible, causal=causal, offset=S - T, window=window).weights()
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-6)
    check_rows(weights, visible_pairs(T, S, visible, causal, window))


def attention_map_has_short():
    q, k = inputs(250, 250)
    with record_paths() as paths:
        attention(q, k, k)
    return paths == ["attention:short"]


def visible_pairs(T, S, visible, causal, window):
    """Which keys each query sees, written out."""
    pairs = torch.ones(B, 1, T, S, dtype=torch.bool)
    for t in range(T) if causal else ():
        for s in range(S):
            i = t + S - T
            pairs[:, :, t, s] = s <= i and (not window or s > i - window)
    return pairs if visible is None else pairs & visible


def check_rows(weights, pairs):
    """Hidden keys are exactly 0, and a row that sees a key sums to 1."""
    assert weights.masked_select(~pairs).eq(0).all()
    sums = pairs.any(3).expand(weights.shape[:3]).float()
    torch.testing.assert_close(weights.sum(3), sums)


@pytest.mark.parametrize("case", ["causal", "bias", "grouped", "scale", "bool"])
def test_weights_are_those_of_torch(case):
    """torch's causal mask starts at the first key, also if there are more keys than queries."""
    T, S = 5, 9
    q, k = inputs(T, S, heads_of_keys=2 if case == "grouped" else H)
    bias = torch.randn(B, H, T, S, generator=torch.Generator().manual_seed(2))
    bias[0, :, 2, 3:] = -torch.inf
    mask, scale = {"bias": bias, "bool": mask_of_pairs(T, S)}.get(case), 0.3 if case == "scale" else None
    expected = kernel_weights(
        lambda q, k, v: F.scaled_dot_product_attention(
            q, k, v, mask, is_causal=case == "causal", scale=scale, enable_gqa=case == "grouped"
        ),
        q,
        k,
    )
    weights = AttentionMap(
        q,
        k,
        visible=mask if case == "bool" else None,
        bias=mask if case == "bias" else None,
        causal=case == "causal",
        scale=scale,
    ).weights()
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-6)
    if case == "causal":
        assert weights.triu(1).eq(0).all()


def test_low_precision_is_recomputed_in_float32():
    q, k = inputs(9, 9, dtype=torch.bfloat16)
    expected = kernel_weights(lambda q, k, v: attention(q, k, v, causal=True), q, k)
    weights = AttentionMap(q, k, causal=True).weights()
    assert weights.dtype == torch.float32
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-2)


@pytest.mark.parametrize("elements", [1, 100, 1 << 22])
def test_a_tile_is_a_part_of_the_whole(elements, monkeypatch):
    """Whatever the block of rows in which it is computed; the whole is never made for a tile."""
    T = S = 9
    q, k = inputs(T, S, heads_of_keys=2)
    attention_of = AttentionMap(q, k, mask_of_pairs(T, S), torch.randn(1, H, 1, S), True, window=7)
    whole = attention_of.weights()
    monkeypatch.setattr(attention_map, "MAX_BLOCK_ELEMENTS", elements)
    for tile in ((None, None, None), (2, 3, None), ([3, 0], slice(2, 7), [8, -9]), (-1, [5, 1], slice(0))):
        heads, rows, columns = ([i] if isinstance(i, int) else slice(None) if i is None else i for i in tile)
        expected = whole[:, heads][:, :, rows][..., columns]
        torch.testing.assert_close(attention_of.weights(*tile), expected)
        assert torch.equal(weights_tile(whole, *tile), expected)
    for outside in (4, [-5]):
        with pytest.raises(IndexError):
            attention_of.weights(heads=outside)


def test_a_copy_stays_and_is_all_that_is_kept():
    q, k = inputs(5, 9)
    cache = torch.cat([k, k], 2)
    first = AttentionMap(q, cache[:, :, :9], mask_of_pairs(5, 9))
    copy, expected = first.copy(), first.weights()
    cache.zero_()
    assert torch.equal(copy.weights(), expected)
    assert copy.nbytes == (q.numel() + k.numel()) * 4 + B * 5 * 9
    assert copy.k.untyped_storage().nbytes() == k.numel() * 4


BUGS = {
    "shifted row": lambda a: replace(a, q=a.q.roll(1, 2)),
    "swapped heads": lambda a: replace(a, q=a.q[:, [1, 0, 2, 3]]),
    "wrong scale": lambda a: replace(a, scale=1 / K),
    "causal by one": lambda a: replace(a, offset=1),
    "window by one": lambda a: replace(a, window=4),
    "no bias": lambda a: replace(a, bias=None),
}


@pytest.mark.parametrize("bug", ["", *BUGS])
def test_the_deviation_shows_a_wrong_map(bug):
    """The number beside every picture is rounding for a right map, and far more for a wrong one."""
    q, k = inputs(20, 20)
    v, bias = torch.randn(B, H, 20, K), torch.randn(1, H, 20, 20)
    right = AttentionMap(q, k, bias=bias, causal=True, window=5)
    pairs = visible_pairs(20, 20, None, True, 5)
    y = F.scaled_dot_product_attention(q, k, v, bias.masked_fill(~pairs, -torch.inf))
    deviation = (BUGS[bug](right) if bug else right).compare(v, y).deviation
    assert deviation is not None
    assert deviation > 1e-2 if bug else deviation < 2e-6
