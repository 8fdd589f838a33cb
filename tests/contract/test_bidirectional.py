"""A ragged bidirectional LSTM from two forward mixers, one on each row reversed within its length."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from foveal.layers.block import Block, Stack
from foveal.layers.feedforward import MLP
from foveal.layers.recurrent import LSTM, Recurrent
from foveal.ops.padding import reverse_within

B, T, D, H = 3, 7, 5, 4
LENGTHS = torch.tensor([T, 3, 0])


class Bidirectional(nn.Module):
    """Outputs of both directions side by side. It needs the whole row, so it has no state to go on from."""

    bounded = False

    def __init__(self, d_in: int, width: int):
        super().__init__()
        self.d_in, self.d_out = d_in, 2 * width
        self.there = Recurrent(LSTM(d_in, width))
        self.back = Recurrent(LSTM(d_in, width))

    def init_state(self, batch, capacity=None, memory=None):
        return None

    def forward(self, x, state=None, *, lengths=None):
        if state is not None:
            raise ValueError(
                "a bidirectional mixer sees the whole sequence at once: it can't go on from a state"
            )
        there, _ = self.there(x, lengths=lengths)
        back, _ = self.back(reverse_within(x, lengths), lengths=lengths)
        return torch.cat([there, reverse_within(back, lengths)], 2), None


def mixer() -> Bidirectional:
    made = Bidirectional(D, H).double()
    for parameter in made.parameters():
        nn.init.uniform_(parameter, -0.8, 0.8)
    return made


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_equals_torch():
    ours, theirs = mixer(), nn.LSTM(D, H, batch_first=True, bidirectional=True).double()
    for part, suffix in ((ours.there, ""), (ours.back, "_reverse")):
        getattr(theirs, f"weight_ih_l0{suffix}").data = part.cell.weight_input.detach()
        getattr(theirs, f"weight_hh_l0{suffix}").data = part.cell.weight_hidden.detach()
        getattr(theirs, f"bias_ih_l0{suffix}").data = part.cell.bias.detach()
        getattr(theirs, f"bias_hh_l0{suffix}").data.zero_()
    x, lengths = torch.randn(B, T, D, dtype=torch.float64), torch.tensor([T, 3, 1])
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(theirs(packed)[0], batch_first=True)
    close(ours(x, lengths=lengths)[0], expected)
    close(ours(x)[0], theirs(x)[0])


def test_padding_and_batch():
    ours, x = mixer(), torch.randn(B, T, D, dtype=torch.float64)
    clean, padded = x.clone().requires_grad_(), x.clone()
    for b, n in enumerate(LENGTHS):
        padded[b, n:] = torch.nan
    padded.requires_grad_()
    y, z = ours(clean, lengths=LENGTHS)[0], ours(padded, lengths=LENGTHS)[0]
    assert torch.equal(y, z)
    for b, n in enumerate(LENGTHS.tolist()):
        assert y[b, n:].eq(0).all()
        if n:
            close(ours(x[b : b + 1, :n])[0][0], y[b, :n])
    parameters = list(ours.parameters())
    one = torch.autograd.grad(y.square().sum(), [*parameters, clean])
    other = torch.autograd.grad(z.square().sum(), [*parameters, padded])
    for a, b in zip(one, other, strict=True):
        assert a.isfinite().all()
        assert torch.equal(a, b)


def test_every_position_sees_the_whole_row():
    ours, x = mixer(), torch.randn(1, T, D, dtype=torch.float64, requires_grad=True)
    for t in range(T):
        (gradient,) = torch.autograd.grad(ours(x)[0][:, t].sum(), x)
        assert gradient.ne(0).any(2).all()


def test_in_a_stack_it_has_no_state_and_refuses_one():
    stack = Stack([Block(mixer(), MLP(2 * H, 8).double(), "none"), Block(Bidirectional(2 * H, H).double())])
    assert not stack.bounded
    x = torch.randn(B, T, D, dtype=torch.float64)
    y, state, _ = stack(x, stack.init_state(B), lengths=LENGTHS)
    assert y.shape == (B, T, 2 * H)
    assert state == {"blocks": (None, None)}
    with pytest.raises(ValueError, match="whole sequence"):
        mixer()(x, {"h": x[:, 0]})
