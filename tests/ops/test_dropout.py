"""Dropout's kernel: its noise is what it says, its gradient has the same noise, and seeds decide it."""

import numpy as np
import pytest
import torch

from foveal.layers.dropout import Dropout
from foveal.ops.dropout import dropout
from foveal.ops.jit.dispatch import record_paths, reference_only


def lowbias32(x: np.ndarray) -> np.ndarray:
    for bits, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = (x ^ (x >> np.uint32(bits))) * np.uint32(factor)
    return x ^ (x >> np.uint32(16))


def expected(count: int, seed: int, share: float) -> torch.Tensor:
    places = np.arange(count, dtype=np.uint32)
    noise = lowbias32(lowbias32(places + np.uint32(seed & 0xFFFFFFFF)) ^ np.uint32(seed >> 32))
    return torch.from_numpy((noise >> np.uint32(8) >= round(share * 2**24)).astype(np.float32))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_noise_is_the_hash_of_seed_and_place(share):
    x = torch.randn(3, 5000, 16, requires_grad=True)
    torch.manual_seed(7)
    with record_paths() as ran:
        y = dropout(x, share)
    assert ran == ["dropout:kernel"]
    torch.manual_seed(7)
    kept = expected(x.numel(), int(torch.randint(1 << 62, ())), share).view_as(x)
    torch.testing.assert_close(y, x * kept / (1 - share))
    dy = torch.randn_like(x)
    (dx,) = torch.autograd.grad(y, x, dy)
    torch.testing.assert_close(dx, dy * kept / (1 - share))


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_share_and_independence(share):
    """The share dropped, neighbours, and two draws: within 5 deviations of independent coins."""
    ones, n = torch.ones(1 << 20), 1 << 20
    first, second = (dropout(ones, share).ne(0).double() for _ in range(2))
    spread = share * (1 - share)
    for coin in (first, second):
        assert abs(coin.mean() - (1 - share)) < 5 * (spread / n) ** 0.5
    a, b = first - (1 - share), second - (1 - share)
    for other in (a.roll(1), a.roll(16), a.roll(256), b):
        assert abs((a * other).mean()) < 5 * spread / n**0.5


def test_threads_and_generator():
    """The same seed gives the same noise on any number of threads; the next call gives other noise."""
    x = torch.randn(64, 4096)
    results = []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        results.append((dropout(x, 0.2), dropout(x, 0.2)))
    torch.set_num_threads(1)
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
    assert not torch.equal(*results[0])


def test_elsewhere_it_is_torchs():
    x = torch.randn(8, 48)
    for odd in (x[:, :7], x.double(), x.bfloat16()):
        torch.manual_seed(0)
        with record_paths() as ran:
            y = dropout(odd, 0.4)
        assert ran == ["dropout:reference"]
        torch.manual_seed(0)
        assert torch.equal(y, torch.nn.functional.dropout(odd, 0.4))
    with reference_only():
        assert dropout(x, 0.4).ne(0).any()


def test_layer_does_nothing_in_evaluation_or_without_a_share():
    x = torch.randn(4, 16)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x
    assert not torch.equal(Dropout(0.5)(x), x)
