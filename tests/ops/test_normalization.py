"""The norms' fast paths equal their equations, in outputs and gradients."""

import pytest
import torch

from foveal.ops.normalization import fused_rms_norm, rms_norm


@pytest.mark.parametrize("shape", [(5,), (3, 7), (2, 3, 192)], ids=str)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_rms_norm(shape, scale):
    x = (scale * torch.randn(*shape[::-1]).permute(*reversed(range(len(shape))))).requires_grad_()
    gain, dy = torch.rand(shape[-1], requires_grad=True), torch.randn(shape)
    ours, theirs = fused_rms_norm(x, gain, 1e-5), rms_norm(x.double(), gain.double(), 1e-5)
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-6)
    for one, other in zip(
        torch.autograd.grad(ours, (x, gain), dy),
        torch.autograd.grad(theirs, (x, gain), dy.double()),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5 * float(other.abs().max()))


def test_rms_norm_of_zeros():
    """No division by zero, forwards or backwards."""
    x, gain = torch.zeros(2, 4, requires_grad=True), torch.ones(4, requires_grad=True)
    y = fused_rms_norm(x, gain, 1e-5)
    y.sum().backward()
    assert y.eq(0).all()
    assert x.grad is not None
    assert x.grad.isfinite().all()


def test_rms_norm_without_gradients():
    x, gain = torch.randn(3, 16), torch.rand(16)
    torch.testing.assert_close(fused_rms_norm(x, gain, 1e-5), rms_norm(x, gain, 1e-5))
    with torch.no_grad():
        torch.testing.assert_close(fused_rms_norm(x, gain, 1e-5), rms_norm(x, gain, 1e-5))
