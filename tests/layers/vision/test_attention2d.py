"""Attention over a grid against its equation, written out place by place, and what it promises."""

import pytest
import torch
from torch import Tensor

from foveal import capture
from foveal.layers.vision.attention2d import SelfAttention2d
from foveal.ops.jit.dispatch import record_paths, reference_only
from tests.support.gradients import gradient_of

C, H, W = 16, 3, 4


def made(gamma: float = 0.7) -> SelfAttention2d:
    torch.manual_seed(0)
    layer = SelfAttention2d(C).double()
    layer.gamma.data.fill_(gamma)
    return layer


def images(batch: int = 2) -> Tensor:
    return torch.randn(batch, C, H, W, dtype=torch.float64)


def test_every_place_is_its_equation():
    layer, x = made(), images(1)
    f, g, h, v = (part.weight for part in (layer.key, layer.query, layer.value, layer.output))
    assert f.shape == g.shape == h.shape == (2, C)
    found = layer(x)
    for row in range(H):
        for column in range(W):
            own = x[0, :, row, column]
            scores = torch.stack([(f @ x[0, :, i, j]) @ (g @ own) for i in range(H) for j in range(W)])
            weights = (scores / 2**0.5).exp()
            weights = (weights / weights.sum()).view(H, W)
            seen = sum(weights[i, j] * (h @ x[0, :, i, j]) for i in range(H) for j in range(W))
            torch.testing.assert_close(found[0, :, row, column], own + 0.7 * (v @ seen))


def test_at_first_it_is_the_identity():
    layer, x = SelfAttention2d(C).double(), images()
    assert torch.equal(layer(x), x)
    layer(x).square().sum().backward()
    assert gradient_of(layer.gamma).ne(0)  # so that it does not stay so
    layer.gamma.data.fill_(0.3)
    layer.reset_parameters()
    assert torch.equal(layer(x), x)


def test_places_are_a_set():
    """Places in another order give the outputs in that order; a picture shifted around too."""
    layer, x = made(), images()
    order = torch.randperm(H * W)
    shuffled = x.flatten(2)[:, :, order].view_as(x)
    torch.testing.assert_close(layer(shuffled), layer(x).flatten(2)[:, :, order].view_as(x))
    torch.testing.assert_close(layer(x.roll((1, 2), (2, 3))), layer(x).roll((1, 2), (2, 3)))


def test_an_image_alone_is_the_image_in_the_batch_in_any_layout():
    layer, x = made(), images(3)
    for row in range(3):
        torch.testing.assert_close(layer(x[row : row + 1])[0], layer(x)[row])
    torch.testing.assert_close(layer(x.contiguous(memory_format=torch.channels_last)), layer(x))


def test_gradients_are_those_of_finite_differences():
    layer = made()
    x = images(1).requires_grad_()
    names = [name for name, _ in layer.named_parameters()]
    weights = tuple(layer.parameters())

    def run(x: Tensor, *weights: Tensor) -> Tensor:
        return torch.func.functional_call(layer, dict(zip(names, weights, strict=True)), (x,))

    assert torch.autograd.gradcheck(run, (x, *weights))


@pytest.mark.parametrize(("dtype", "path"), [(torch.float32, "fused"), (torch.bfloat16, "products")])
def test_the_fast_path_is_the_default_and_gives_the_same(dtype: torch.dtype, path: str):
    layer, x = made().to(dtype), images().to(dtype)
    with record_paths() as paths:
        found = layer(x)
    assert f"attention:{path}" in paths
    with reference_only():
        expected = layer(x)
    near = 1e-6 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(found, expected, rtol=near, atol=near)


def test_its_weights_are_shown():
    layer, x = made(), images()
    with capture(layer, "*/weights") as seen:
        layer(x)
    (weights,) = seen["/weights"]
    assert weights.shape == (2, 1, H * W, H * W)
    torch.testing.assert_close(weights.sum(3), torch.ones(2, 1, H * W, dtype=torch.float64))
