"""An image's patches to a memory: the order, the laws of every encoder, and what does not fit."""

import pytest
import torch
from torch.nn import functional as F

from foveal.core.memory import Segment
from foveal.encoders.patches import PatchEncoder, patches
from foveal.layers.block import Block, Stack
from foveal.layers.feedforward import MLP
from foveal.layers.memory_attention import FullAttention
from foveal.layers.norm import LayerNorm
from foveal.layers.position import LearnedPosition, Positioned

B, C, SIDE, D = 3, 2, 4, 8


def make() -> PatchEncoder:
    block = Block(FullAttention(D, 2), MLP(D, 12), "layer", residual=True)
    stack = Stack([block], Positioned(LearnedPosition(6, D), "add"))
    return PatchEncoder(C, SIDE, stack, D, LayerNorm(D)).double().eval()


def images() -> torch.Tensor:
    return torch.randn(B, C, 2 * SIDE, 3 * SIDE, dtype=torch.float64)


def test_patches_are_those_of_a_convolution():
    """A convolution whose stride is its kernel computes the same map (Dosovitskiy et al. 2021, 3.1)."""
    encoder, x = make(), images()
    weight = encoder.projection.weight.view(D, C, SIDE, SIDE)
    grid = F.conv2d(x, weight, encoder.projection.bias, stride=SIDE)
    torch.testing.assert_close(encoder.projection(patches(x, SIDE)), grid.flatten(2).transpose(1, 2))


def test_memory_and_laws():
    encoder, x = make(), images()
    memory, aux = encoder(x)
    assert memory.vectors.shape == (B, 6, D)
    assert memory.mask.all()
    assert memory.segments == (Segment(0, 6, "grid", (2, 3)),)
    assert aux == {}
    torch.testing.assert_close(encoder(x[1:2])[0].vectors, memory.vectors[1:2])
    encoder(x)[0].summary.pow(2).sum().backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in encoder.parameters())


def test_first_vectors_have_unit_variance():
    encoder = PatchEncoder(3, 8, Stack([Block(FullAttention(512, 2))]), 512)
    x = encoder.projection(patches(torch.randn(16, 3, 32, 32), 8))
    assert 0.9 < x.std() < 1.1


def test_images_that_patches_do_not_fill():
    with pytest.raises(ValueError, match="patches of 4 pixels don't fill an image of 8 x 10"):
        make()(torch.zeros(1, C, 8, 10, dtype=torch.float64))
