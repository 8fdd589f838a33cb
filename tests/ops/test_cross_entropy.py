"""Losses behind a projection: torch's own, in values and gradients, whole and piece by piece."""

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from foveal.ops import cross_entropy as module
from foveal.ops.cross_entropy import linear_cross_entropy
from foveal.ops.jit.dispatch import record_paths, reference_only


def inputs(n=37, d=8, v=50, bias=True, dtype=torch.float64):
    h, weight = torch.randn(n, d, dtype=dtype), torch.randn(v, d, dtype=dtype)
    leaves = [h, weight] + ([torch.randn(v, dtype=dtype)] if bias else [])
    return [leaf.requires_grad_() for leaf in leaves], torch.randint(v, (n,))


def run(leaves, targets, label_smoothing):
    h, weight, *bias = leaves
    return linear_cross_entropy(h, weight, bias[0] if bias else None, targets, label_smoothing)


@pytest.fixture
def small_pieces(monkeypatch):
    """Pieces of 3 rows, for few outcomes too."""
    monkeypatch.setattr(module, "MIN_CHUNKED_CLASSES", 0)
    monkeypatch.setattr(module, "LOGITS_PER_CHUNK", 150)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("path", ["chunks", "reference"])
def test_equals_torchs(path, bias, label_smoothing, small_pieces):
    leaves, targets = inputs(bias=bias)
    logits = F.linear(leaves[0], leaves[1], leaves[2] if bias else None)
    wanted = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=label_smoothing)
    gradients = torch.autograd.grad(3 * wanted, leaves, retain_graph=True)
    nats = F.cross_entropy(logits, targets, reduction="sum")
    with record_paths() as ran:
        if path == "reference":
            with reference_only():
                found = run(leaves, targets, label_smoothing)
        else:
            found = run(leaves, targets, label_smoothing)
    assert ran == [f"cross_entropy:{path}"]
    close: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-10}
    torch.testing.assert_close(found.label_smoothed, wanted, **close)
    torch.testing.assert_close(found.nll, nats.detach(), **close)
    assert not found.nll.requires_grad
    torch.testing.assert_close(torch.autograd.grad(3 * found.label_smoothed, leaves), gradients, **close)


def test_some_leaves_are_frozen(small_pieces):
    (h, weight, bias), targets = inputs()
    frozen = run([h, weight.detach(), bias.detach()], targets, 0.1)
    (dh,) = torch.autograd.grad(frozen.label_smoothed, h)
    torch.testing.assert_close(
        dh, torch.autograd.grad(run([h, weight, bias], targets, 0.1).label_smoothed, h)[0]
    )


def test_without_gradients_and_without_rows(small_pieces):
    leaves, targets = inputs()
    with torch.no_grad():
        found = run(leaves, targets, 0.1)
    assert not found.label_smoothed.requires_grad
    torch.testing.assert_close(found.label_smoothed, run(leaves, targets, 0.1).label_smoothed.detach())
    empty = run([leaves[0][:0], *leaves[1:]], targets[:0], 0.1)
    assert empty.label_smoothed == 0
    assert torch.autograd.grad(empty.label_smoothed, leaves[1])[0].eq(0).all()


def test_extreme_logits_and_nan(small_pieces):
    (h, weight, bias), targets = inputs(dtype=torch.float32)
    huge = run([h * 1e4, weight, bias], targets, 0.1)
    assert huge.label_smoothed.isfinite()
    spoilt = h.detach().clone()
    spoilt[5, 0] = torch.nan
    assert run([spoilt, weight, bias], targets, 0.1).label_smoothed.isnan()


def test_lower_precision(small_pieces):
    """Products are in bfloat16, the softmax and all sums in float32, and gradients in the
    parameters' dtype."""
    leaves, targets = inputs(64, 32, 50, dtype=torch.float32)
    wanted = run(leaves, targets, 0.1).label_smoothed
    gradients = torch.autograd.grad(wanted, leaves)
    with torch.autocast("cpu", torch.bfloat16):
        found = run(leaves, targets, 0.1).label_smoothed
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, wanted, rtol=1e-2, atol=0)
    for low, exact in zip(torch.autograd.grad(found, leaves), gradients, strict=True):
        assert low.dtype == torch.float32
        assert (low - exact).norm() < 0.02 * exact.norm()
