"""An image's patches to a memory: the order, the laws of every encoder, and what does not fit."""

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from foveal.config import ConfigError, EncoderConfig
from foveal.core.memory import Segment
from foveal.encoders.patches import PatchEncoder, extract_patches, interpolate_positions
from foveal.layers.blocks.feedforward import MLP
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.mixers.full_attention import FullAttention
from foveal.layers.norm import LayerNorm
from foveal.layers.position import AddPositions, LearnedPosition
from foveal.models.encoder import patch_encoder, series_encoder

B, C, SIDE, D = 3, 2, 4, 8


def make(summary: Any = "mean") -> PatchEncoder:
    blocks: list[Any] = [Block(FullAttention(D, 2), MLP(D, 12), "layer", residual=True) for _ in range(2)]
    stack = Stack(blocks, AddPositions(LearnedPosition(6 + (summary == "cls"), D), "add"))
    return PatchEncoder(C, SIDE, stack, D, LayerNorm(D), summary).double().eval()


def images() -> torch.Tensor:
    return torch.randn(B, C, 2 * SIDE, 3 * SIDE, dtype=torch.float64)


def test_patches_are_those_of_a_convolution():
    """A convolution whose stride is its kernel computes the same map (Dosovitskiy et al. 2021, 3.1)."""
    encoder, x = make(), images()
    weight = encoder.projection.weight.view(D, C, SIDE, SIDE)
    grid = F.conv2d(x, weight, encoder.projection.bias, stride=SIDE)
    torch.testing.assert_close(encoder.projection(extract_patches(x, SIDE)), grid.flatten(2).transpose(1, 2))


@pytest.mark.parametrize("summary", ["mean", "cls"])
def test_memory_and_laws(summary: Any) -> None:
    encoder, x = make(summary), images()
    memory, aux = encoder(x)
    assert memory.vectors.shape == (B, 6, D)
    assert memory.mask.all()
    assert memory.segments == (Segment(0, 6, "grid", (2, 3)),)
    assert aux == {}
    torch.testing.assert_close(encoder(x[1:2])[0].vectors, memory.vectors[1:2])
    assert encoder.grid(8 * SIDE) == (8, 8)
    encoder(x)[0].summary.pow(2).sum().backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in encoder.parameters())


def test_first_vectors_have_unit_variance():
    encoder = PatchEncoder(3, 8, Stack([Block(FullAttention(512, 2))]), 512)
    x = encoder.projection(extract_patches(torch.randn(16, 3, 32, 32), 8))
    assert 0.9 < x.std() < 1.1


def test_images_that_patches_do_not_fill():
    with pytest.raises(ValueError, match="patches of 4 pixels don't fill an image of 8 x 10"):
        make()(torch.zeros(1, C, 8, 10, dtype=torch.float64))


def test_a_class_token_goes_before_the_patches_and_is_no_place_of_the_grid():
    """z_0 = [x_class; x_1 E; ...] + E_pos, y = LN(z_L)_0 (Dosovitskiy et al. 2021, equations 1 and 4)."""
    encoder, x = make("cls"), images()
    tokens = encoder.projection(extract_patches(x, SIDE))
    assert encoder.token is not None
    z, _, _ = encoder.stack(torch.cat([encoder.token.expand(B, 1, D), tokens], 1), None)
    memory, _ = encoder(x)
    torch.testing.assert_close(memory.summary, encoder.norm(z)[:, 0])
    torch.testing.assert_close(memory.vectors, encoder.norm(z)[:, 1:])


def sizes(**settings: Any) -> EncoderConfig:
    stack = {"kind": "patches", "width": D, "mixers": "attention", "positions": {"kind": "learned"}}
    return EncoderConfig.model_validate(stack | settings)


def test_positions_are_those_of_the_grid_and_of_the_token():
    for pooling, count in (("mean", 4), ("cls", 5)):
        encoder = patch_encoder(sizes(pooling=pooling), 1, 2 * SIDE)
        assert encoder.limit == count
        assert encoder(torch.randn(2, 1, 2 * SIDE, 2 * SIDE))[0].summary.shape == (2, D)


def test_what_has_no_class_token():
    with pytest.raises(ConfigError, match=r"it sees no patch through .*mixers=lstm"):
        patch_encoder(sizes(pooling="cls", mixers="lstm"), 1, 8)
    assert patch_encoder(sizes(pooling="cls", mixers="lstm", bidirectional=True), 1, 8).token is not None
    with pytest.raises(ConfigError, match="pooling=cls: only patches have a class token"):
        series_encoder(sizes(pooling="cls"), 1, 8)
    with pytest.raises(ConfigError, match="images of 10x10 are not filled by patches of 4"):
        patch_encoder(sizes(), 1, 10)


@pytest.mark.parametrize("tokens", [0, 1])
def test_positions_of_another_grid_lie_between(tokens: int):
    """A slope stays one, but at the edges, to the twentieth that cubics wave; a token's position stays."""
    rows, columns = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij")
    table = torch.stack([rows, columns], 2).flatten(0, 1).double()
    table = torch.cat([torch.full((tokens, 2), 99.0, dtype=torch.float64), table])
    found = interpolate_positions(table, 256 + tokens, tokens)
    assert torch.equal(found[:tokens], table[:tokens])
    grid = found[tokens:].view(16, 16, 2)[4:12, 4:12]
    expected = (torch.arange(4, 12).double() + 0.5) / 2 - 0.5
    torch.testing.assert_close(grid[:, :, 0], expected[:, None].expand(8, 8), rtol=0, atol=0.05)
    torch.testing.assert_close(grid[:, :, 1], expected[None].expand(8, 8), rtol=0, atol=0.05)
    assert interpolate_positions(table, 64 + tokens, tokens) is table
