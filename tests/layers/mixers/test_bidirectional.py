"""Both directions of two mixers: equal to torch's, and to two mixers run by hand."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from foveal.layers.blocks.feedforward import MLP
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.mixers.bidirectional import Bidirectional
from foveal.layers.mixers.causal_conv1d import CausalConv1d
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import GRUCell, LSTMCell
from tests.support.mixer_rows import randomize

B, T, D, H = 3, 7, 5, 4
LENGTHS = torch.tensor([T, 3, 1])


def mixer() -> Bidirectional:
    return randomize(Bidirectional(Recurrent(LSTMCell(D, H)), Recurrent(LSTMCell(D, H))).double(), 0.8)


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("ragged", [False, True])
def test_equals_torch(ragged):
    """Outputs and gradients, on rows of their own lengths."""
    ours: Any = mixer()
    theirs = nn.LSTM(D, H, batch_first=True, bidirectional=True).double()
    for part, suffix in ((ours.there, ""), (ours.back, "_reverse")):
        getattr(theirs, f"weight_ih_l0{suffix}").data = part.cell.weight_input.detach().clone()
        getattr(theirs, f"weight_hh_l0{suffix}").data = part.cell.weight_hidden.detach().clone()
        getattr(theirs, f"bias_ih_l0{suffix}").data = part.cell.bias.detach().clone()
        getattr(theirs, f"bias_hh_l0{suffix}").data.zero_()
    x = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    if ragged:
        packed = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
        expected, _ = pad_packed_sequence(theirs(packed)[0], batch_first=True)
    else:
        expected, _ = theirs(x)
    y, _ = ours(x, lengths=LENGTHS if ragged else None)
    close(y, expected)
    direction = torch.randn(y.shape, dtype=torch.float64)
    cells = (ours.there.cell, ours.back.cell)
    found = torch.autograd.grad(y, [x, *(cell.weight_hidden for cell in cells)], direction)
    wanted: Any = [x, theirs.weight_hh_l0, theirs.weight_hh_l0_reverse]
    for a, b in zip(found, torch.autograd.grad(expected, wanted, direction), strict=True):
        close(a, b)


def test_any_two_mixers():
    """Each row by itself, the second mixer on the row turned round."""
    there, back = Recurrent(GRUCell(D, H)).double(), CausalConv1d(D, 6, 3).double()
    both, x = Bidirectional(there, back), torch.randn(B, T, D, dtype=torch.float64)
    assert (both.d_in, both.d_out) == (D, H + 6)
    y, _ = both(x, lengths=LENGTHS)
    for b, n in enumerate(LENGTHS):
        row = x[b : b + 1, :n]
        close(y[b, :n, :H], there(row)[0][0])
        close(y[b, :n, H:], back(row.flip(1))[0].flip(1)[0])


def test_their_sum():
    parts = (Recurrent(GRUCell(D, H)).double(), CausalConv1d(D, H, 3).double())
    both, summed = Bidirectional(*parts), Bidirectional(*parts, join="sum")
    x = torch.randn(B, T, D, dtype=torch.float64)
    assert summed.d_out == H
    close(summed(x, lengths=LENGTHS)[0], torch.stack(both(x, lengths=LENGTHS)[0].chunk(2, 2)).sum(0))


def test_every_position_sees_the_whole_row():
    ours, x = mixer(), torch.randn(1, T, D, dtype=torch.float64, requires_grad=True)
    for t in range(T):
        (gradient,) = torch.autograd.grad(ours(x)[0][:, t].sum(), x)
        assert gradient.ne(0).any(2).all()


def test_in_a_stack_it_has_no_state_and_refuses_one():
    second = Bidirectional(Recurrent(GRUCell(2 * H, H)), Recurrent(GRUCell(2 * H, H)))
    stack = Stack([Block(mixer(), MLP(2 * H, 8)), Block(second)]).double()
    assert not stack.bounded
    x = torch.randn(B, T, D, dtype=torch.float64)
    y, state, _ = stack(x, stack.init_state(B), lengths=LENGTHS)
    assert y.shape == (B, T, 2 * H)
    assert state == {"blocks": (None, None)}
    with pytest.raises(ValueError, match="can't go on from a state"):
        mixer()(x, {"h": x[:, 0]})


def test_widths_that_do_not_fit():
    with pytest.raises(ValueError, match="both directions read the same input, not 5 and 6 wide"):
        Bidirectional(Recurrent(GRUCell(5, H)), Recurrent(GRUCell(6, H)))
    with pytest.raises(ValueError, match="a sum needs equal widths, not 4 and 5"):
        Bidirectional(Recurrent(GRUCell(D, 4)), Recurrent(GRUCell(D, 5)), "sum")
