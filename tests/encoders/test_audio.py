"""Frames to a memory: the laws, the pyramid against torch's LSTM, the convolutions against their equation."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal.core.runtime import autocast
from foveal.encoders.audio import ConvSubsamplingEncoder, PyramidalLSTMEncoder
from foveal.laws import encoder_laws as laws
from foveal.layers.audio.pyramidal_lstm import PyramidalLSTM, join_pairs
from foveal.layers.audio.subsampling import ConvSubsampling
from foveal.layers.blocks.feedforward import MLP
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.mixers.full_attention import FullAttention
from foveal.layers.norm import LayerNorm
from foveal.layers.position import AddPositions, LearnedPosition, SinusoidalPosition

F, D = 5, 8
LENGTHS = [13, 12, 7, 4, 1, 0]
S = max(LENGTHS)


def pyramid(layers: int) -> PyramidalLSTMEncoder:
    encoder = PyramidalLSTMEncoder(F, D, layers).double().eval()
    for parameter in encoder.parameters():
        nn.init.uniform_(parameter, -0.8, 0.8)
    return encoder


def convolved() -> ConvSubsamplingEncoder:
    blocks: list[nn.Module] = [
        Block(FullAttention(D, 2), MLP(D, 16), "layer", residual=True) for _ in range(2)
    ]
    stack = Stack(blocks, AddPositions(SinusoidalPosition(D), "add"))
    encoder = ConvSubsamplingEncoder(F, stack, D, LayerNorm(D)).double().eval()
    for parameter in encoder.parameters():
        nn.init.uniform_(parameter, -0.8, 0.8)  # biases too: they make something of the padding
    return encoder


def source(size: int = S) -> Tensor:
    return torch.randn(len(LENGTHS), size, F, dtype=torch.float64)


def ceil_of(parts: int) -> list[int]:
    return [math.ceil(length / parts) for length in LENGTHS]


@pytest.mark.parametrize("size", [S, S + 1, S + 6])
@pytest.mark.parametrize(
    ("make", "parts"),
    [(lambda: pyramid(1), 1), (lambda: pyramid(3), 4), (lambda: pyramid(5), 16), (convolved, 4)],
)
def test_laws(make, parts, size):
    encoder, x = make(), source(size)
    memory = laws.shape(encoder, x, LENGTHS, ceil_of(parts))
    assert memory.segments[0].kind == "times"
    assert memory.vectors.shape[1] == math.ceil(size / parts)
    laws.padding(encoder, x, LENGTHS)
    laws.batch(encoder, x, LENGTHS)
    laws.every_parameter_learns(encoder, x, LENGTHS)


def test_pairs():
    x = torch.arange(1.0, 6).view(1, 5, 1)
    assert join_pairs(x).tolist() == [[[1, 2], [3, 4], [5, 0]]]
    assert torch.equal(join_pairs(torch.ones(2, 4, 3)), torch.ones(2, 2, 6))


def test_the_pyramid_is_torchs_lstm_with_pairs_joined():
    """Each row by itself through nn.LSTM; between layers [h_0; h_1], [h_2; h_3] ..., written out."""
    encoder, x = pyramid(3), source()
    memory, _ = encoder(x, torch.tensor(LENGTHS))
    for row, length in enumerate(LENGTHS):
        if not length:
            continue
        steps = list(x[row, :length])
        block: Any
        for number, block in enumerate(encoder.pyramid.blocks):
            if number:
                steps += [torch.zeros(D, dtype=torch.float64)] * (len(steps) % 2)
                steps = [torch.cat(steps[t : t + 2]) for t in range(0, len(steps), 2)]
            peer = nn.LSTM(len(steps[0]), D // 2, bidirectional=True, dtype=torch.float64)
            part: Any
            for part, suffix in ((block.mixer.there, ""), (block.mixer.back, "_reverse")):
                getattr(peer, f"weight_ih_l0{suffix}").data = part.cell.weight_input.detach()
                getattr(peer, f"weight_hh_l0{suffix}").data = part.cell.weight_hidden.detach()
                getattr(peer, f"bias_ih_l0{suffix}").data = part.cell.bias.detach()
                getattr(peer, f"bias_hh_l0{suffix}").data.zero_()
            outputs, (last, _) = peer(torch.stack(steps))
            steps = list(outputs)
        laws.near(memory.vectors[row, : len(steps)], torch.stack(steps))
        laws.near(memory.summary[row], last.flatten())


def test_the_convolutions_equal_their_equation():
    layer, x = ConvSubsampling(F, D).double(), source()
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -0.8, 0.8)
    found, lengths = layer(x, torch.tensor(LENGTHS))
    assert lengths.tolist() == ceil_of(4)
    zero = torch.zeros
    for row, length in enumerate(LENGTHS):
        steps = list(x[row, :length])
        for part in (layer.first, layer.second):
            before = dict(enumerate(steps))
            steps = []
            for t in range((len(before) + 1) // 2):
                a = torch.as_tensor(part.bias)
                for j in range(3):
                    inputs = before.get(2 * t + j - 1, zero(part.in_channels, dtype=torch.float64))
                    a = a + part.weight[:, :, j] @ inputs
                steps.append(a * (1 + torch.erf(a / math.sqrt(2))) / 2)
        if steps:
            laws.near(found[row, : len(steps)], torch.stack(steps))


def test_convolutions_keep_the_size_of_vectors():
    layer = ConvSubsampling(80, 256)
    with torch.no_grad():
        y, _ = layer(torch.randn(4, 200, 80))
    assert 0.5 < float(y.square().mean().sqrt()) < 1.2
    assert layer.first.bias is not None
    assert layer.first.bias.eq(0).all()


def test_positions_reach_four_times_as_far_in_frames():
    stack = Stack(
        [Block(FullAttention(D, 2), None, "rms", residual=True)], AddPositions(LearnedPosition(3, D), "add")
    )
    encoder = ConvSubsamplingEncoder(F, stack, D)
    assert encoder.limit == 12
    assert encoder(torch.randn(1, 12, F))[0].vectors.shape == (1, 3, D)


def test_odd_widths_are_refused():
    with pytest.raises(ValueError, match="even width, not 7"):
        PyramidalLSTM(F, 7, 2)


@pytest.mark.parametrize("make", [lambda: pyramid(3), convolved])
def test_in_bfloat16_vectors_come_close(make):
    encoder, lengths = make().float(), torch.tensor(LENGTHS)
    x = source().float()
    exact, _ = encoder(x, lengths)
    with autocast(torch.device("cpu"), "bfloat16"):
        memory, _ = encoder(x, lengths)
    assert torch.equal(memory.mask, exact.mask)
    assert 0 < (memory.vectors.float() - exact.vectors).norm() < 0.05 * exact.vectors.norm()
