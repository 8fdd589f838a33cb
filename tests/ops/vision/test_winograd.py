"""Winograd's convolution equals the direct one in float64, in outputs and all gradients."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from foveal.layers.vision.conv2d import Conv2d
from foveal.ops.jit.code_cache import kernel_address
from foveal.ops.jit.dispatch import record_paths, reference_only
from foveal.ops.kernels.simd import matmul
from foveal.ops.vision import winograd
from foveal.ops.vision.winograd import conv2d_3x3

FAST, REFERENCE = ["conv2d_3x3:winograd"], ["conv2d_3x3:reference"]
# N, C, D, H, W, padding: whole tiles and cut ones, channels that fill vectors and panels or don't, several
# squares of channels, fewer tiles than a block.
SIZES = [
    (7, 32, 64, 13, 11, 1),
    (9, 24, 64, 31, 31, 1),
    (16, 144, 16, 9, 9, 1),
    (70, 64, 24, 7, 9, 1),
    (20, 40, 48, 12, 9, 0),
    (18, 256, 160, 8, 8, 1),
    (16, 64, 64, 9, 9, 2),
    (64, 16, 16, 4, 4, 1),
]
TOLERANCE = 2e-5
"""Of the largest number: transforms and products round some ten times as much as the sum does."""

pytestmark = pytest.mark.skipif(not winograd._has_wide_registers(), reason="this processor has no AVX2")


@pytest.fixture(params=[1, 2])
def threads(request):
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(1)


def drawn(N: int, C: int, D: int, H: int, W: int) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    shapes = ((N, C, H, W), (D, C, 3, 3), (D,))
    x, weight, bias = (torch.randn(shape, generator=draw).requires_grad_() for shape in shapes)
    return x, weight, bias


def assert_near(found: Tensor, right: Tensor) -> None:
    assert found.shape == right.shape
    assert (found - right).abs().max() < TOLERANCE * right.abs().max()


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_it_equals_the_direct_convolution(sizes, threads):
    *shape, padding = sizes
    given = drawn(*shape)
    exact = [x.detach().double().requires_grad_() for x in given]
    with record_paths() as paths:
        y = conv2d_3x3(*given, padding)
    assert paths == FAST
    x, weight, bias = exact
    right = F.conv2d(x, weight, bias, padding=padding)
    dy = torch.randn_like(right)
    assert_near(y, right)
    found = torch.autograd.grad(y, given, dy.float())
    for a, b in zip(found, torch.autograd.grad(right, exact, dy), strict=True):
        assert_near(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("sums", [(8, 2), (4, 1)], ids=["32 registers", "16"])
def test_however_many_sums_the_registers_have_room_for(sums, monkeypatch, tmp_path):
    """The code of another processor than this."""
    monkeypatch.setenv("FOVEAL_CACHE", str(tmp_path))
    monkeypatch.setattr(matmul, "_sums_at_once", lambda: sums)
    for kernel in (winograd._forward, winograd._backward):
        monkeypatch.setattr(kernel, "_address", kernel_address(kernel.module, kernel.name))
    test_it_equals_the_direct_convolution(SIZES[0], 1)


def test_layouts_do_not_matter():
    x, weight, bias = drawn(9, 32, 32, 12, 12)
    y = conv2d_3x3(x, weight, bias)
    last = conv2d_3x3(
        x.contiguous(memory_format=torch.channels_last), weight.mT.contiguous().mT, bias.repeat(2)[:32]
    )
    assert torch.equal(y, last)


def test_a_gradient_is_made_only_where_it_is_asked_for():
    x, weight, _ = drawn(9, 32, 32, 12, 12)
    conv2d_3x3(x, weight.detach()).sum().backward()
    assert weight.grad is None
    before = x.grad
    conv2d_3x3(x.detach(), weight).sum().backward()
    assert x.grad is before
    assert weight.grad is not None


def test_images_do_not_know_each_other():
    x, weight, bias = (given.detach() for given in drawn(24, 32, 32, 12, 12))
    alone, together = conv2d_3x3(x[:12], weight, bias), conv2d_3x3(x, weight, bias)
    assert torch.equal(alone, together[:12])
    x[13, 5, 6, 7] = torch.nan
    spoilt = conv2d_3x3(x, weight, bias)
    others = torch.arange(24) != 13
    assert torch.equal(spoilt[others], together[others])
    assert spoilt[13, :, 5:8, 6:9].isnan().all()


@pytest.mark.parametrize(
    "change",
    [
        lambda x, weight: (x.double(), weight.double()),
        lambda x, weight: (x[:3], weight),  # too few tiles
        lambda x, weight: (x[:, :, :5, :5], weight),  # four tiles of 25 places, 39 % of them filled
        lambda x, weight: (x[:, :20], weight[:, :20]),  # no multiple of 8
        lambda x, weight: (x[:, :8], weight[:, :8]),  # less than a vector
        lambda x, weight: (
            torch.randn(20, 136, 12, 12),
            torch.randn(32, 136, 3, 3),
        ),  # shares of 8
    ],
)
def test_torch_computes_the_rest(change):
    x, weight, _ = drawn(20, 32, 32, 12, 12)
    x, weight = change(x, weight)
    with record_paths() as paths:
        assert_near(conv2d_3x3(x, weight), F.conv2d(x, weight, padding=1))
    assert paths == REFERENCE


def test_bfloat16_is_torchs():
    x, weight, _ = drawn(20, 32, 32, 12, 12)
    with record_paths() as paths, torch.autocast("cpu", torch.bfloat16):
        y = conv2d_3x3(x, weight)
    assert paths == REFERENCE
    assert y.dtype == torch.bfloat16


def test_layers_take_it_where_it_fits():
    x, _, _ = drawn(20, 32, 32, 12, 12)
    with record_paths() as paths, torch.no_grad():
        for layer in (Conv2d(32, 32, 3, stride=2), Conv2d(32, 32, 5), Conv2d(32, 32, 3, groups=4)):
            layer(x)
        assert paths == []
        layer = Conv2d(32, 64, 3, bias=True)
        y = layer(x)
    assert paths == FAST
    with reference_only():
        assert_near(y, layer(x))
