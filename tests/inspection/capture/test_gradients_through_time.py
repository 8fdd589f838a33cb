"""The gradient of a loss for the state at every step, `grad:<layer>/h`: through all later steps."""

from typing import Any

import pytest
import torch
from torch import nn

from foveal import UserError, capture
from foveal.layers import GRU, LSTM, RNN, AttentionRNN, Bidirectional, Memory, Recurrent, RecurrentCell
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.mixers.mamba import Mamba
from foveal.layers.mixers.rwkv import TimeMixing
from foveal.layers.mixers.self_attention import SelfAttention

B, T, D, H = 3, 7, 4, 5
NEAR: dict[str, Any] = {"rtol": 0, "atol": 1e-10}


class Linear(RecurrentCell):
    """h_t = W h_(t-1) + x_t, whose gradients are powers of W."""

    def __init__(self):
        super().__init__()
        self.d_in = self.d_out = H
        self.sizes = {"h": H}
        self.weight = nn.Parameter(torch.randn(H, H) / 2)

    def reset_parameters(self):
        pass

    def project(self, x):
        return x

    def step(self, p, state):
        h = p + state["h"] @ self.weight.mT
        return h, {"h": h}


@pytest.fixture(autouse=True)
def in_float64():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def plain_loop(mixer, x):
    """Every state as a tensor of the graph, from torch's own cells or the equations."""
    cell = mixer.cell
    W_x, W_h, b = cell.weight_input, cell.weight_hidden, cell.bias
    h = c = torch.zeros(len(x), H)
    states: dict[str, list[torch.Tensor]] = {name: [] for name in cell.sizes}
    for x_t in x.unbind(1):
        if isinstance(mixer, LSTM):
            h, c = torch.lstm_cell(x_t, (h, c), W_x, W_h, b, torch.zeros_like(b))
        elif isinstance(mixer, RNN):
            h = (x_t @ W_x.mT + h @ W_h.mT + b).tanh()
        elif cell.bias_new is not None:
            h = torch.gru_cell(x_t, h, W_x, W_h, b, torch.cat([torch.zeros(2 * H), cell.bias_new]))
        else:
            r, z = (x_t @ W_x[: 2 * H].mT + b[: 2 * H] + h @ W_h[: 2 * H].mT).sigmoid().chunk(2, 1)
            n = (x_t @ W_x[2 * H :].mT + b[2 * H :] + (r * h) @ W_h[2 * H :].mT).tanh()
            h = z * h + (1 - z) * n
        for name in states:
            states[name].append(h if name == "h" else c)
    return states


MIXERS = {
    "rnn": lambda: RNN(D, H),
    "lstm": lambda: LSTM(D, H),
    "gru": lambda: GRU(D, H),
    "gru of the paper": lambda: GRU(D, H, reset_after=False),
}


@pytest.mark.parametrize("name", list(MIXERS))
@pytest.mark.parametrize("last_only", [True, False])
def test_equal_to_autograd_on_the_plain_loop(name, last_only):
    """And not what the kernel's outputs have, which is the direct part alone."""
    mixer, x, target = MIXERS[name](), torch.randn(B, T, D), torch.randn(B, T, H)
    target[:, : T - 1 if last_only else 0] = 0
    with capture(mixer, "/h", "/c" if name == "lstm" else "/h", "grad:*") as record:
        y, _ = mixer(x)
        (y * target).sum().backward()
    states = plain_loop(mixer, x)
    loss = (torch.stack(states["h"], 1) * target).sum()
    for part, steps in states.items():
        gradients = torch.autograd.grad(loss, steps, retain_graph=True, allow_unused=True)
        expected = torch.stack([torch.zeros(B, H) if g is None else g for g in gradients], 1)
        torch.testing.assert_close(record[f"grad:/{part}"][0], expected, **NEAR)
        torch.testing.assert_close(record[f"/{part}"][0], torch.stack(steps, 1), **NEAR)
        assert record[f"grad:/{part}"].dims == ("batch", "time", "unit")
    torch.testing.assert_close(record["grad:/hidden"][0], target)
    assert (record["grad:/h"][0][:, 0].abs() > 0).any(), "a direct part alone would be zero at the first step"
    torch.testing.assert_close(y, mixer(x)[0])


def test_a_linear_network_has_the_closed_form():
    """dL/dh_t = g W^(T - t) for a loss g . h_T."""
    mixer, g = Recurrent(Linear()), torch.randn(H)
    with capture(mixer, "grad:*/h") as record:
        y, _ = mixer(torch.randn(B, T, H))
    (y[:, -1] @ g).sum().backward()  # after the block, too
    W = mixer.cell.get_parameter("weight").detach()
    expected = torch.stack([g @ torch.linalg.matrix_power(W, T - 1 - t) for t in range(T)])
    torch.testing.assert_close(record["grad:/h"][0], expected.expand(B, T, H), **NEAR)


def test_lengths_states_and_several_calls():
    """Padding has zeros; each call has a record of its own; a second loss adds."""
    mixer, x, lengths = LSTM(D, H), torch.randn(B, T, D), torch.tensor([T, 3, 0])
    with capture(mixer, "*/c", "grad:*/c") as record:
        _, state = mixer(x, lengths=lengths)
        y, _ = mixer(x[:, :2], state)
        y.sum().backward(retain_graph=True)
    first, second = record["grad:/c"]
    assert first.shape == (B, T, H)
    assert second.shape == (B, 2, H)
    for values in (first, record["/c"][0]):
        assert values[1, 3:].eq(0).all()
        assert values[2].eq(0).all()
        assert values[0].ne(0).all()
        assert values[1, :3].ne(0).all()
    before = first.clone()
    y.sum().backward()
    torch.testing.assert_close(record["grad:/c"][0], 2 * before)


@pytest.mark.parametrize("hard", [False, True])
def test_recurrent_attention_and_both_directions(hard):
    memory = Memory(torch.randn(B, 6, D), torch.ones(B, 6, dtype=torch.bool), torch.randn(B, D))
    mixer, x = AttentionRNN("gru", D, H, D, "additive", hard=hard).eval(), torch.randn(B, T, D)
    with capture(mixer, "*/h", "grad:*/h", "*/hidden") as record:
        mixer(x, mixer.init_state(B, memory=memory))[0][:, -1].sum().backward()
    torch.testing.assert_close(record["recurrent/h"][0], record["/hidden"][0])
    assert record["grad:recurrent/h"][0].ne(0).any(2).all()
    both = Bidirectional(RNN(D, H), RNN(D, H))
    with capture(both, "grad:*/h") as record:
        both(x)[0][:, -1].sum().backward()
    assert record.names() == ["grad:there/h", "grad:back/h"]
    back = record["grad:back/h"][0]
    assert back[:, 0].ne(0).all(), "its first step is the last position"
    assert back[:, 1:].eq(0).all()


@pytest.mark.parametrize("name", list(MIXERS))
def test_both_directions_of_ragged_rows(name):
    """Each row as if it were alone; the reversed direction counts its steps from the end of the row."""
    both, lengths = Bidirectional(MIXERS[name](), MIXERS[name]()), torch.tensor([T, 3, 1])
    x, target = torch.randn(B, T, D), torch.randn(B, T, 2 * H)
    with capture(both, "*/h", "grad:*/h", *(["grad:*/c"] if name == "lstm" else [])) as record:
        (both(x, lengths=lengths)[0] * target).sum().backward()
    for direction, mixer in (("there", both.there), ("back", both.back)):
        for row, length in enumerate(lengths.tolist()):
            inputs, wanted = x[row : row + 1, :length], target[row : row + 1, :length]
            wanted = wanted[..., :H] if direction == "there" else wanted[..., H:].flip(1)
            states = plain_loop(mixer, inputs if direction == "there" else inputs.flip(1))
            loss = (torch.stack(states["h"], 1) * wanted).sum()
            for part, steps in states.items():
                gradients = torch.autograd.grad(loss, steps, retain_graph=True, allow_unused=True)
                expected = torch.stack([torch.zeros(1, H) if g is None else g for g in gradients], 1)
                got = record[f"grad:{direction}/{part}"][0][row]
                torch.testing.assert_close(got[:length], expected[0], **NEAR)
                assert got[length:].eq(0).all()


@pytest.mark.parametrize("kind", ["attention", "mamba", "rwkv", "lstm"])
def test_any_mixer_has_the_gradient_of_its_outputs(kind):
    """What models of different kinds share: the gradient for a block's output at each position, from later
    positions of the next block."""
    make = {
        "attention": lambda: SelfAttention(H + 3, 2),
        "mamba": lambda: Mamba(H + 3),
        "rwkv": lambda: TimeMixing(H + 3),
        "lstm": lambda: LSTM(H + 3, H + 3),
    }[kind]
    stack = Stack([Block(make(), residual=True) for _ in range(2)])
    for parameter in stack.parameters():
        nn.init.normal_(parameter, std=0.3)
    x = torch.randn(B, T, H + 3)
    with capture(stack, "grad:blocks.0/features", "blocks.0/features") as record:
        stack(x)[0][:, -1].sum().backward()
    features = record["blocks.0/features"][0].requires_grad_()
    (expected,) = torch.autograd.grad(stack.blocks[1](features)[0][:, -1].sum(), features)
    torch.testing.assert_close(record["grad:blocks.0/features"][0], expected, **NEAR)
    assert expected[:, 0].ne(0).any()


def test_a_gradient_that_has_not_come():
    mixer = LSTM(D, H)
    with capture(mixer, "grad:*/h") as record:
        mixer(torch.randn(B, T, D))
    with pytest.raises(UserError, match=r"no gradient has reached grad:/h: call backward\(\) on a loss"):
        record["grad:/h"][0]


@pytest.mark.parametrize(("make", "names"), [(LSTM, "ifgo"), (GRU, "rz")])
def test_gates(make, names):
    """The gates give the states that were captured with them, and have gradients through later steps."""
    mixer, x, lengths = make(D, H), torch.randn(B, T, D), torch.tensor([T, 3, 0])
    sites = [f"/{name}" for name in names]
    with capture(mixer, *sites, "/h", *(["/c"] if make is LSTM else []), "grad:*") as record:
        y, _ = mixer(x)
        y[:, -1].sum().backward()
    gates = {name: record[f"/{name}"][0] for name in names}
    h = record["/h"][0]
    if make is LSTM:
        c = record["/c"][0]
        before = torch.cat([torch.zeros(B, 1, H), c[:, :-1]], 1)
        torch.testing.assert_close(gates["f"] * before + gates["i"] * gates["g"], c, **NEAR)
        torch.testing.assert_close(gates["o"] * c.tanh(), h, **NEAR)
        # dL/df_t = dL/dc_t * c_(t-1)
        torch.testing.assert_close(record["grad:/f"][0], record["grad:/c"][0] * before, **NEAR)
    else:
        before = torch.cat([torch.zeros(B, 1, H), h[:, :-1]], 1)
        W_x, W_h, b = mixer.cell.weight_input[:H], mixer.cell.weight_hidden[:H], mixer.cell.bias[:H]
        torch.testing.assert_close(gates["r"], (x @ W_x.mT + b + before @ W_h.mT).sigmoid().detach(), **NEAR)
        n = (h - gates["z"] * before) / (1 - gates["z"])
        assert (n.abs() <= 1).all(), "z keeps the state before"
    assert record[f"grad:/{names[0]}"][0][:, 1].ne(0).all()
    assert mixer.cell.shown_gates is None
    with capture(mixer, *sites) as record:
        padded, _ = mixer(x, lengths=lengths)
    assert record[sites[0]][0][1, 3:].eq(0).all()
    torch.testing.assert_close(padded[0], y[0])
