"""A passed state that is not the mixer's own, or of another batch, dtype or window, is one plain error; and
so is an input that is no batch of sequences of vectors."""

import re

import pytest
import torch

from foveal.core.state import select_rows
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.mixers.base import check_input
from foveal.layers.mixers.causal_conv1d import CausalConv1d
from foveal.layers.mixers.mamba import Mamba
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import ElmanCell, GRUCell, LSTMCell
from foveal.layers.mixers.rwkv import ChannelMixing, TimeMixing
from foveal.layers.mixers.s5 import S5
from foveal.layers.mixers.self_attention import SelfAttention
from foveal.layers.position import AddPositions, SinusoidalPosition

B, T, D = 3, 4, 8


def stack(*mixers, positions=False):
    positioned = AddPositions(SinusoidalPosition(D), "add") if positions else None
    return Stack([Block(mixer, residual=True) for mixer in mixers], positioned)


LSTM_STATE = Recurrent(LSTMCell(D, 6)).init_state(B)
WINDOW_STATE = SelfAttention(D, 2, window=3).init_state(B)
WHOLE_STATE = SelfAttention(D, 2).init_state(B, capacity=9)

WRONG = {
    "tuple": (Recurrent(LSTMCell(D, 6)), (1, 2), "it has tuple; needed: c, h"),
    "other cell": (Recurrent(GRUCell(D, 6)), LSTM_STATE, "it has c, h; needed: h"),
    "other mixer": (SelfAttention(D, 2), LSTM_STATE, "it has c, h; needed: count, filled, keys, values"),
    "other width": (
        Recurrent(LSTMCell(D, 5)),
        LSTM_STATE,
        r"state's h has the shape \(3, 6\); needed: \(3, 5\)",
    ),
    "batch": (
        Recurrent(LSTMCell(D, 6)),
        Recurrent(LSTMCell(D, 6)).init_state(2),
        r"\(2, 6\); needed: \(3, 6\)",
    ),
    "dtype": (
        Recurrent(LSTMCell(D, 6)),
        Recurrent(LSTMCell(D, 6).double()).init_state(B),
        "float64; needed: .*32",
    ),
    "attention batch": (
        SelfAttention(D, 2),
        SelfAttention(D, 2).init_state(1, capacity=9),
        r"keys has the shape \(1, 9, 2, 4\); needed: \(3, any, 2, 4\)",
    ),
    "attention heads": (SelfAttention(D, 4), WHOLE_STATE, r"\(3, 9, 2, 4\); needed: \(3, any, 4, 2\)"),
    "attention dtype": (SelfAttention(D, 2).double(), WHOLE_STATE, "float32; needed: torch.float64"),
    "window": (SelfAttention(D, 2, window=5), WINDOW_STATE, r"\(3, 2, 2, 4\); needed: \(3, 4, 2, 4\)"),
    "window to none": (SelfAttention(D, 2), WINDOW_STATE, "it has count, keys, values; needed: .*filled"),
    "other dilation": (
        CausalConv1d(D, 6, 3, dilation=2),
        CausalConv1d(D, 6, 3).init_state(B),
        r"inputs has the shape \(3, 2, 8\); needed: \(3, 4, 8\)",
    ),
    "other states": (S5(D, 4, 2), S5(D, 6, 2).init_state(B), r"\(3, 6, 2\); needed: \(3, 4, 2\)"),
    "other kernel": (Mamba(D), Mamba(D, kernel=3).init_state(B), r"\(3, 2, 16\); needed: \(3, 3, 16\)"),
    "fewer blocks": (
        stack(Mamba(D), Mamba(D)),
        stack(Mamba(D)).init_state(B),
        "a state of 1 blocks; needed: 2",
    ),
    "none to window": (SelfAttention(D, 2, window=3), WHOLE_STATE, "needed: count, keys, values"),
}


def refused(module, state, message):
    with pytest.raises(ValueError, match=message) as error:
        module(torch.zeros(B, T, D, dtype=next(module.parameters()).dtype), state)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", list(WRONG))
def test_refused(name):
    refused(*WRONG[name])


EVERY = {
    "rnn": Recurrent(ElmanCell(D, 5)),
    "lstm": Recurrent(LSTMCell(D, 6)),
    "gru": Recurrent(GRUCell(D, 6)),
    "conv": CausalConv1d(D, 6, 3),
    "attention": SelfAttention(D, 2),
    "window": SelfAttention(D, 2, window=3),
    "s5": S5(D, 4, 2),
    "mamba": Mamba(D, 2, 4),
    "time mixing": TimeMixing(D),
    "channel mixing": ChannelMixing(D, 6),
    "block": Block(CausalConv1d(D, D, 2), norm="layer"),
    "stack": stack(S5(D, 4, 2), SelfAttention(D, 2)),
    "other order": stack(SelfAttention(D, 2), S5(D, 4, 2)),
    "more blocks": stack(S5(D, 4, 2), SelfAttention(D, 2), Mamba(D)),
    "positions": stack(S5(D, 4, 2), SelfAttention(D, 2), positions=True),
}


@pytest.mark.parametrize("name", list(EVERY))
def test_every_mixer_refuses_what_is_not_its_own(name):
    """The states of all others, of another batch, of another dtype; its own is right."""
    module = EVERY[name]
    for other, owner in EVERY.items():
        if other != name:
            refused(module, owner.init_state(B), "state.*needed: ")
    state = module.init_state(B + 1)
    refused(module, state, rf"\({B + 1}, .*; needed: \({B}, |\({B + 1},\); needed: \({B}\)")
    module(torch.zeros(B, T, D), select_rows(state, torch.arange(B)))
    state = module.double().init_state(B)
    refused(module.float(), state, "is of torch.float64; needed: torch.float32")


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize(
    "name", [name for name, module in EVERY.items() if not isinstance(module, Block | Stack)]
)
@pytest.mark.parametrize("shape", [(), (D,), (T, D), (1, B, T, D)])
def test_an_input_is_a_batch_of_sequences_of_vectors(name, shape):
    """A bare number has no product with a matrix, and one sequence alone is not guessed to be a batch."""
    with pytest.raises(ValueError, match=f"an input of the shape {re.escape(str(shape))}; needed: "):
        EVERY[name](torch.zeros(shape))


@pytest.mark.parametrize("mixer", [Recurrent(LSTMCell(D, 6)), SelfAttention(D, 2), SelfAttention(D, 2, 3)])
def test_autocast_may_carry_either_dtype(mixer):
    """A state begun in float32 or in bfloat16 goes on under autocast; without it, bfloat16 is refused."""
    x, shapes = torch.randn(B, T, D), {"a": (-1, 2)}
    with torch.autocast("cpu", torch.bfloat16):
        _, state = mixer(x, mixer.init_state(B))
        _, state = mixer(x)
        mixer(x, state)
        check_input(x, {"a": torch.zeros(B, 7, 2, dtype=torch.bfloat16)}, shapes, x)
    with pytest.raises(ValueError, match="bfloat16"):
        check_input(x, {"a": torch.zeros(B, 7, 2, dtype=torch.bfloat16)}, shapes, x)


def test_more_heads_than_divide_the_width():
    for heads in (3, 16):
        with pytest.raises(ValueError, match=f"width 8 is not a multiple of {heads} heads"):
            SelfAttention(D, heads)
