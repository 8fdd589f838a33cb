"""GELU's kernel is torch's function, in both forms, forwards and backwards, and where numbers are extreme."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from foveal.ops.gelu import gelu, gelu_tanh
from foveal.ops.jit.dispatch import record_paths, reference_only

FORMS = {"exact": (gelu, "none"), "tanh": (gelu_tanh, "tanh")}


def numbers() -> Tensor:
    """Of every size, near 0 the most."""
    torch.manual_seed(0)
    near, wide = torch.randn(3, 1 << 13), torch.randn(3, 1 << 13) * torch.logspace(-6, 3, 1 << 13)
    return torch.cat([near, wide], 1)


@pytest.mark.parametrize("form", FORMS)
def test_it_is_torchs_in_double(form: str) -> None:
    function, approximate = FORMS[form]
    x = numbers().requires_grad_()
    with record_paths() as ran:
        y = function(x)
    assert ran == ["gelu:kernel"]
    given = torch.randn_like(x)
    (dx,) = torch.autograd.grad(y, x, given)
    exact = x.detach().double().requires_grad_()
    expected = F.gelu(exact, approximate=approximate)
    (slope,) = torch.autograd.grad(expected, exact, torch.ones_like(exact))
    room = 4e-7 * exact.abs().clamp(min=1)
    assert bool(((y - expected).abs() <= room).all())
    assert bool(((dx - given * slope).abs() <= 3e-6 * given.abs() + 1e-9).all())


@pytest.mark.parametrize("form", FORMS)
def test_what_is_far_or_no_number(form: str) -> None:
    function, _ = FORMS[form]
    ends = torch.tensor([0.0, -0.0, 63.9, -63.9, 65.0, -65.0, 1e20, -1e20, 3e38, -3e38, math.inf, math.nan])
    x = ends.repeat_interleave(1 << 12).requires_grad_()
    y = function(x)
    (dx,) = torch.autograd.grad(y.sum(), x)
    for place, end in enumerate(ends.tolist()):
        at = place << 12
        expected = torch.tensor(0.0 if end < 0 else end)
        torch.testing.assert_close(y[at].detach(), expected, equal_nan=True)
        slope = torch.tensor(end if math.isnan(end) else 0.5 if end == 0 else float(end > 0))
        torch.testing.assert_close(dx[at], slope, equal_nan=True)


def test_channels_last_and_threads() -> None:
    """Numbers in another order in memory, with gradients in yet another; any number of threads."""
    torch.manual_seed(0)
    images = torch.randn(4, 32, 16, 16).to(memory_format=torch.channels_last).requires_grad_()
    given = torch.randn(4, 32, 16, 16)
    results = []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        y = gelu(images)
        results.append((y, *torch.autograd.grad(y, images, given)))
    torch.set_num_threads(1)
    assert y.is_contiguous(memory_format=torch.channels_last)
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))
    with reference_only():
        y = gelu(images)
        expected = (y, *torch.autograd.grad(y, images, given))
    for ours, theirs in zip(results[0], expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_elsewhere_it_is_torchs() -> None:
    x = torch.randn(64, 512)
    for odd in (x[:4], x[:, ::2], x[:, :33].contiguous(), x.double(), x.bfloat16()):
        with record_paths() as ran:
            y = gelu(odd)
        assert ran == ["gelu:reference"]
        assert torch.equal(y, F.gelu(odd))
