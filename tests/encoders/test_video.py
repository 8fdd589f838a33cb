"""Frames to a memory: the laws over several stacks and for 3D convolutions, and what a vector sees."""

from typing import Any

import pytest
import torch
from torch import nn

from foveal.encoders.image import ImageEncoder
from foveal.encoders.video import Conv3dEncoder, FrameEncoder
from foveal.laws import encoder_laws as laws
from foveal.layers.blocks.feedforward import MLP
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.linear import Linear
from foveal.layers.mixers.bidirectional import Bidirectional
from foveal.layers.mixers.mamba import Mamba
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import GRUCell, LSTMCell
from foveal.layers.mixers.self_attention import SelfAttention
from foveal.layers.norm import LayerNorm
from foveal.layers.vision.conv2d import ConvNormAct

C, D, T, SIDE = 3, 8, 7, 8
LENGTHS = [T, 3, 0, 1]
FORWARD = {
    "lstm": lambda: Stack([Block(Recurrent(LSTMCell(D, D)))]),
    "attention": lambda: Stack([Block(SelfAttention(D, 2), MLP(D, 12), "layer", residual=True)]),
    "mamba": lambda: Stack([Block(Mamba(D, 2, 4, 3), None, "layer", residual=True)]),
}
STACKS = {
    **FORWARD,
    "both ways": lambda: Stack(
        [Block(Bidirectional(Recurrent(GRUCell(D, D // 2)), Recurrent(GRUCell(D, D // 2))), None, "layer")]
    ),
}


def make(kind: str) -> FrameEncoder | Conv3dEncoder:
    torch.manual_seed(0)
    if kind == "volume":
        made: FrameEncoder | Conv3dEncoder = Conv3dEncoder(C, D, 2, SIDE)
    else:
        network = ImageEncoder([ConvNormAct(C, 4, 3, 2), ConvNormAct(4, 5, 3, 2)], 5)
        norm = LayerNorm(D)  # whose bias makes something of zeros
        nn.init.normal_(norm.bias)
        made = FrameEncoder(network, 5 * 4, STACKS[kind](), D, norm)
    for module in made.modules():
        if isinstance(module, nn.BatchNorm2d):  # whose bias does too
            nn.init.normal_(module.bias)
            assert module.running_mean is not None
            nn.init.normal_(module.running_mean)
    return made.double().eval()


def source() -> torch.Tensor:
    return torch.randn(len(LENGTHS), T, C, SIDE, SIDE, dtype=torch.float64)


@pytest.mark.parametrize("kind", [*STACKS, "volume"])
def test_laws(kind):
    encoder, x = make(kind), source()
    memory = laws.shape(encoder, x, LENGTHS, LENGTHS)
    assert memory.segments[0].kind == "times"
    laws.padding(encoder, x, LENGTHS)
    laws.batch(encoder, x, LENGTHS)
    laws.every_parameter_learns(encoder, x, LENGTHS)


@pytest.mark.parametrize(
    ("kind", "value"), [*((kind, 1e3) for kind in FORWARD), ("lstm", torch.nan), ("mamba", torch.nan)]
)
def test_with_causal_mixers_no_frame_sees_a_later_one(kind, value):
    encoder, x = make(kind), source()
    before, _ = encoder(x)
    other = x.clone()
    other[:, 4:] = value
    after, _ = encoder(other)
    assert torch.equal(before.vectors[:, :4], after.vectors[:, :4])
    assert not torch.equal(before.vectors[:, 4], after.vectors[:, 4])
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(encoder(x)[0].vectors[:, :4].square().sum(), x)
    assert gradient[:, 4:].eq(0).all()
    assert gradient[:, 3].ne(0).any()


def test_a_volume_sees_a_frame_a_layer_to_each_side():
    encoder, x = make("volume"), source()
    other = x.clone()
    other[:, 3] += 1
    changed = (encoder(other)[0].vectors != encoder(x)[0].vectors).any(2).all(0)
    assert changed.tolist() == [abs(frame - 3) <= 2 for frame in range(T)]


def test_a_volume_is_what_torch_makes_of_whole_clips():
    """Its Conv3d, BatchNorm3d and MaxPool3d over all frames at once, and a map of each frame's places."""
    encoder: Any
    encoder, x = make("volume"), source()
    y = x.transpose(1, 2)
    for layer in encoder.layers:
        norm = nn.BatchNorm3d(layer.norm.num_features).double().eval()
        norm.load_state_dict(layer.norm.state_dict())
        y = nn.functional.conv3d(y, layer.convolution.weight, padding=1)
        y = nn.functional.max_pool3d(norm(y).relu(), (1, 2, 2))
    expected = encoder.projection(y.transpose(1, 2).flatten(2))
    laws.near(encoder(x)[0].vectors, expected)


def first_norm(encoder: FrameEncoder | Conv3dEncoder) -> Any:
    return next(module for module in encoder.modules() if isinstance(module, nn.BatchNorm2d))


@pytest.mark.parametrize("kind", ["lstm", "volume"])
def test_padding_counts_in_no_statistic(kind):
    """Those of training are of the frames that there are, each row's convolved alone."""
    encoder: Any
    encoder, x = make(kind).train(), source()
    rows = [row[:length] for row, length in zip(x, LENGTHS, strict=True) if length]
    if kind == "volume":
        convolve = encoder.layers[0].convolution
        maps = torch.cat([convolve(row.transpose(0, 1)).transpose(0, 1) for row in rows])
    else:
        maps = encoder.network.blocks[0].convolution(torch.cat(rows))
    expected = 0.9 * first_norm(encoder).running_mean + 0.1 * maps.mean((0, 2, 3))
    for row, length in enumerate(LENGTHS):
        x[row, length:] = torch.nan
    encoder(x, torch.tensor(LENGTHS))
    laws.near(first_norm(encoder).running_mean, expected)


def test_a_vector_knows_where_something_is():
    """A mean over the places of the map would not."""
    encoder = make("lstm")
    x = torch.zeros(2, 1, C, 16, 16, dtype=torch.float64)
    encoder.projection = Linear(5 * 16, D).double()
    x[0, 0, :, 4:8, 4:8], x[1, 0, :, 8:12, 4:8] = 1, 1
    one, other = encoder(x)[0].vectors
    assert (one - other).abs().max() > 1e-3


def test_sizes_that_leave_nothing_are_refused():
    with pytest.raises(ValueError, match="4 layers halve 8 pixels, or 16 maps, to nothing"):
        Conv3dEncoder(1, 16, 4, 8)
    with pytest.raises(ValueError, match="to nothing"):
        Conv3dEncoder(1, 4, 4, 32)
