"""Vectors to a memory: the laws over several stacks, and each summary against what it stands for."""

import math
from typing import Any

import pytest
import torch

from foveal.encoders.series import SeriesEncoder
from foveal.laws import encoder_laws as laws
from foveal.layers.blocks.feedforward import MLP, SwiGLU
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.moe import Experts
from foveal.layers.blocks.stack import Stack
from foveal.layers.mixers.bidirectional import Bidirectional
from foveal.layers.mixers.full_attention import FullAttention
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import GRUCell, LSTMCell
from foveal.layers.norm import LayerNorm, RMSNorm
from foveal.layers.position import AddPositions, LearnedPosition, SinusoidalPosition

C, D, S = 3, 8, 7
LENGTHS = [S, 3, 0, 1]


def both_ways(d_in: int) -> Bidirectional:
    return Bidirectional(Recurrent(GRUCell(d_in, D // 2)), Recurrent(GRUCell(d_in, D // 2)))


STACKS = {
    "lstm": lambda: Stack([Block(Recurrent(LSTMCell(D, D))), Block(Recurrent(LSTMCell(D, D)))]),
    "both-ways": lambda: Stack([Block(both_ways(D), MLP(D, 12), "layer", residual=True) for _ in range(2)]),
    "attention": lambda: Stack(
        [Block(FullAttention(D, 2), SwiGLU(D, 12), "rms", residual=True)],
        AddPositions(SinusoidalPosition(D), "add"),
    ),
    "experts": lambda: Stack([Block(both_ways(D), Experts(D, 6, 3, 2))]),
}


def make(kind: str, summary: Any = "mean") -> SeriesEncoder:
    norm = LayerNorm(D)  # whose bias makes something of zeros
    torch.nn.init.normal_(norm.bias)
    return SeriesEncoder(C, STACKS[kind](), D, norm, summary).double().eval()


def source() -> torch.Tensor:
    return torch.randn(len(LENGTHS), S, C, dtype=torch.float64)


@pytest.mark.parametrize("kind", STACKS)
@pytest.mark.parametrize("summary", ["mean", "last", "final-states"])
def test_laws(kind, summary):
    encoder, x = make(kind, summary), source()
    memory = laws.shape(encoder, x, LENGTHS, LENGTHS)
    assert memory.segments[0].kind == "times"
    laws.padding(encoder, x, LENGTHS)
    laws.batch(encoder, x, LENGTHS)
    laws.every_parameter_learns(encoder, x, LENGTHS)


def test_summaries():
    x, lengths = source(), torch.tensor(LENGTHS)
    for summary, of in (
        ("mean", lambda row: sum(row) / len(row)),
        ("last", lambda row: row[-1]),
        ("final-states", lambda row: torch.cat([row[-1][: D // 2], row[0][D // 2 :]])),
    ):
        memory, _ = make("lstm", summary)(x, lengths)
        for row, found, n in zip(memory.vectors, memory.summary, LENGTHS, strict=True):
            expected: Any = of(list(row[:n])) if n else torch.zeros_like(found)
            laws.near(found, expected)


def test_ends_are_the_last_states_of_both_directions():
    """Without a norm behind them, they are the hidden states that torch's GRU ends with."""
    encoder = SeriesEncoder(C, Stack([Block(both_ways(D))]), D, pooling="final-states").double()
    mixer: Any
    mixer, x = encoder.stack.blocks[0].mixer, source()
    memory, _ = encoder(x, torch.tensor(LENGTHS))
    peer = torch.nn.GRU(D, D // 2, bidirectional=True, batch_first=True).double()
    part: Any
    for part, suffix in ((mixer.there, ""), (mixer.back, "_reverse")):
        getattr(peer, f"weight_ih_l0{suffix}").data = part.cell.weight_input.detach()
        getattr(peer, f"weight_hh_l0{suffix}").data = part.cell.weight_hidden.detach()
        getattr(peer, f"bias_ih_l0{suffix}").data.zero_()
        getattr(peer, f"bias_hh_l0{suffix}").data.zero_()
    for row, n in enumerate(LENGTHS):
        if n:
            _, last = peer(encoder.projection(x[row : row + 1, :n]))
            laws.near(memory.summary[row], last[:, 0].flatten())


def test_sums_of_experts_count_what_is_there():
    encoder, x = make("experts"), source()
    assert encoder.aux_names == ["balance"]
    _, aux = encoder(x, torch.tensor(LENGTHS))
    assert aux.keys() == {"balance"}
    assert aux["balance"][LENGTHS.index(0)] == 0
    assert aux["balance"][0] > 0


def test_standardised_channels_become_vectors_of_variance_one():
    encoder = SeriesEncoder(12, STACKS["lstm"](), 400)
    vectors = encoder.projection(torch.randn(500, 12))
    assert abs(float(vectors.detach().square().mean()) - 1) < 0.1
    assert encoder.projection.bias.eq(0).all()
    assert abs(float(encoder.projection.weight.detach().std()) * math.sqrt(12) - 1) < 0.1


def test_learned_positions_have_an_end():
    positioned = AddPositions(LearnedPosition(9, D), "add")
    stack = Stack([Block(FullAttention(D, 2), None, "rms", residual=True)], positioned)
    assert SeriesEncoder(C, stack, D, RMSNorm(D)).limit == 9
    assert make("attention").limit is None
