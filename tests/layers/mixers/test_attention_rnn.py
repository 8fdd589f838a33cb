"""The attentive decoder equals its equations written out vector by vector, gradients included."""

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor

from foveal import capture
from foveal.core.memory import Memory
from foveal.core.runtime import autocast
from foveal.core.state import select_rows
from foveal.layers.mixers.attention_rnn import AttentionRNN
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import LSTMCell
from foveal.ops.jit.dispatch import record_paths, reference_only
from tests.support.mixer_rows import randomize

B, T, S, D, M = 3, 6, 4, 5, 7
LENGTHS = torch.tensor([T, 0, 3])
BOTTLENECKS = ("initial-state", "every-step")
MASK = torch.tensor([[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, 0, 0]]).bool()
WIDTHS = {"dot": M}
"""Of the decoder, where it isn't 6."""


def additive(mixer: AttentionRNN, s: Tensor, h: Tensor) -> Tensor:
    score: Any = mixer.score
    return score.weight @ (score.query.weight @ s + score.key.weight @ h + score.key.bias).tanh()


SCORES = {
    "additive": additive,
    "dot": lambda mixer, s, h: s @ h,
    "general": lambda mixer, s, h: s @ mixer.score.key.weight @ h,
    "scaled-dot": lambda mixer, s, h: s @ mixer.score.key.weight @ h / len(s) ** 0.5,
}


def rnn(cell, x: Tensor, s: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    return (cell.weight_input @ x + cell.weight_hidden @ s + cell.bias).tanh(), c


def lstm(cell, x: Tensor, s: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = (cell.weight_input @ x + cell.weight_hidden @ s + cell.bias).chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def gru(cell, x: Tensor, s: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    (p_r, p_z, p_n), (a_r, a_z, a_n) = (
        (cell.weight_input @ x + cell.bias).chunk(3),
        (cell.weight_hidden @ s).chunk(3),
    )
    r, z = (p_r + a_r).sigmoid(), (p_z + a_z).sigmoid()
    return z * s + (1 - z) * (p_n + r * (a_n + cell.bias_new)).tanh(), c


CELLS = {"rnn": rnn, "lstm": lstm, "gru": gru}


def written_out(
    mixer: AttentionRNN, kind: str, score: str, x: Tensor, memory: Memory
) -> tuple[Tensor, Tensor]:
    """Outputs of every row over its whole length (B, T, H), and the weights (B, T, S)."""
    outputs, weights = [], []
    for b in range(B):
        s, c = (mixer.first.weight @ memory.summary[b] + mixer.first.bias).tanh(), torch.zeros(mixer.d_out)
        for x_t in x[b]:
            there, a = MASK[b].nonzero()[:, 0].tolist(), torch.zeros(S)
            context = {"initial-state": torch.zeros(0), "every-step": memory.summary[b]}.get(
                score, torch.zeros(M)
            )
            if score in SCORES and there:
                e = torch.stack([SCORES[score](mixer, s, memory.vectors[b, i]) for i in there])
                w = e.exp() / e.exp().sum()
                a[there] = w.detach()
                context = torch.zeros(M, dtype=x.dtype)
                for n, i in enumerate(there):
                    context = context + w[n] * memory.vectors[b, i]
            s, c = CELLS[kind](mixer.recurrent.cell, torch.cat([x_t, context]), s, c)
            outputs.append(s)
            weights.append(a)
    return torch.stack(outputs).view(B, T, -1), torch.stack(weights).view(B, T, S)


def made(kind: Any, score: Any) -> AttentionRNN:
    return randomize(AttentionRNN(kind, D, WIDTHS.get(score, 6), M, score), 0.7)


def memory_of() -> Memory:
    vectors = torch.randn(B, S, M).masked_fill(~MASK[:, :, None], torch.nan)
    return Memory(vectors.requires_grad_(), MASK, torch.randn(B, M, requires_grad=True))


@pytest.fixture(params=["reference", "default"])
def exact(request):
    """float64, on either path."""
    torch.set_default_dtype(torch.float64)
    with reference_only() if request.param == "reference" else nullcontext():
        yield
    torch.set_default_dtype(torch.float32)


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("kind", list(CELLS))
@pytest.mark.parametrize("score", [*BOTTLENECKS, *SCORES])
def test_equals_its_equations(kind, score):
    mixer, memory = made(kind, score), memory_of()
    x = torch.randn(B, T, D, requires_grad=True)
    y, state = mixer(x, mixer.init_state(B, memory=memory))
    expected, _ = written_out(mixer, kind, score, x, memory)
    close(y, expected)
    close(state["h"], expected[:, -1])
    wanted = [x, memory.vectors, memory.summary, *mixer.parameters()]
    direction = torch.randn(y.shape)
    found, others = (
        torch.autograd.grad(outputs, wanted, direction, allow_unused=True) for outputs in (y, expected)
    )
    for a, b in zip(found, others, strict=True):
        if b is None:
            assert a is None or a.eq(0).all()
        else:
            close(torch.zeros_like(b) if a is None else a, b)
    y, state = mixer(x, mixer.init_state(B, memory=memory), lengths=LENGTHS)
    for row, n in enumerate(LENGTHS.tolist()):
        close(y[row, :n], expected[row, :n])
        close(state["h"][row], expected[row, n - 1] if n else mixer.first(memory.summary)[row].tanh())


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("score", list(SCORES))
def test_the_weights_that_a_tap_shows(score):
    mixer, memory, x = made("gru", score), memory_of(), torch.randn(B, T, D)
    start = mixer.init_state(B, memory=memory)
    unseen, _ = mixer(x, start)
    with capture(mixer) as seen:
        y, _ = mixer(x, start)
    assert torch.equal(y, unseen)
    (weights,) = seen["/weights"]
    _, expected = written_out(mixer, "gru", score, x, memory)
    close(weights, expected[:, None])
    assert torch.equal(seen["/hidden"][0], y)


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("training", [True, False])
def test_the_places_that_a_tap_shows_are_those_looked_at(training):
    """With their vectors as contexts the equations give the outputs; in use they are the likeliest."""
    mixer = randomize(AttentionRNN("gru", D, 6, M, "additive", hard=True), 0.7).train(training)
    memory, x = memory_of(), torch.randn(B, T, D)
    with capture(mixer) as seen:
        y, _ = mixer(x, mixer.init_state(B, memory=memory))
    places = seen["/weights"][0][:, 0]
    assert places.shape == (B, T, S)
    for b, there in enumerate(MASK):
        s = (mixer.first.weight @ memory.summary[b] + mixer.first.bias).tanh()
        for x_t, place, y_t in zip(x[b], places[b], y[b], strict=True):
            assert sorted(place.tolist()) == [0, 0, 0, float(there.any())]
            assert not place[~there].any()
            if there.any() and not training:
                e = torch.stack([additive(mixer, s, h) for h in memory.vectors[b]])
                assert place.argmax() == e.masked_fill(~there, -torch.inf).argmax()
            context = place[there] @ memory.vectors[b, there]
            s, _ = gru(mixer.recurrent.cell, torch.cat([x_t, context]), s, s)
            close(s, y_t)


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("score", [*BOTTLENECKS, *SCORES])
def test_a_row_alone_with_its_own_memory(score):
    """Without the places that its mask leaves out."""
    mixer, memory, x = made("lstm", score), memory_of(), torch.randn(B, T, D)
    whole, _ = mixer(x, mixer.init_state(B, memory=memory))
    for b in (0, 1):
        there = MASK[b]
        alone = Memory(memory.vectors[b : b + 1, there], there[there][None], memory.summary[b : b + 1])
        y, _ = mixer(x[b : b + 1], mixer.init_state(1, memory=alone))
        close(y[0], whole[b])


@pytest.mark.parametrize("score", [*BOTTLENECKS, *SCORES])
def test_the_memory_is_projected_once(score):
    mixer = made("gru", score)
    state = mixer.init_state(B, memory=memory_of())
    _, after = mixer(torch.randn(B, T, D), state)
    given = state.keys() - {"h"}
    expected = {"initial-state": set(), "every-step": {"memory_summary"}}
    assert given == expected.get(score, {"memory_keys", "memory_values", "memory_mask"})
    assert all(after[name] is state[name] for name in given)


@pytest.mark.parametrize("score", BOTTLENECKS)
def test_the_bottleneck_takes_the_fused_path(score):
    mixer = made("gru", score)
    with record_paths() as ran:
        mixer(torch.randn(B, T, D), mixer.init_state(B, memory=memory_of()))
    assert ran == ["GRUCell:kernel"]


@pytest.mark.parametrize("kind", list(CELLS))
@pytest.mark.parametrize("score", [*BOTTLENECKS, *SCORES])
def test_a_state_keeps_its_precision_under_autocast(kind, score):
    mixer, memory = made(kind, score), memory_of()
    x = torch.randn(B, T, D)
    exact, _ = mixer(x, mixer.init_state(B, memory=memory))
    with autocast(torch.device("cpu"), "bfloat16"):
        y, state = mixer(x, mixer.init_state(B, memory=memory), lengths=torch.tensor([T, T, 0]))
        _, later = mixer(x, state)
    assert all(later[name].dtype == torch.float32 for name in mixer.recurrent.shapes)
    torch.testing.assert_close(y[:2].float(), exact[:2], rtol=0, atol=0.1)


def test_initialisation():
    mixer: Any = AttentionRNN("gru", 40, 64, 48, "additive")
    bounds = {
        mixer.first.weight: 48,
        mixer.score.key.weight: 48,
        mixer.score.query.weight: 64,
        mixer.score.weight: 64,
    }
    weight: Any
    for weight, reads in bounds.items():
        size, deviation = reads**-0.5, weight.detach().std()
        assert weight.detach().abs().max() <= size
        assert abs(float(deviation) / (size / 3**0.5) - 1) < 0.25
    assert all(bias.eq(0).all() for bias in (mixer.first.bias, mixer.score.key.bias))


def refused(mixer, state, message):
    with pytest.raises(ValueError, match=message) as error:
        mixer(torch.zeros(B, T, D), state)
    assert "\n" not in str(error.value)


def test_what_is_refused():
    mixer, memory = AttentionRNN("gru", D, 6, M, "additive"), memory_of()
    state = mixer.init_state(B, memory=memory)
    refused(mixer, None, "can't go on from nothing: begin with init_state")
    refused(
        mixer,
        Recurrent(LSTMCell(D, 6)).init_state(B),
        "it has c, h; needed: h, memory_keys, memory_mask, memory_values",
    )
    refused(
        mixer,
        AttentionRNN("gru", D, 6, M, "every-step").init_state(B, memory=memory),
        "it has h, memory_summary; needed",
    )
    refused(mixer, select_rows(state, torch.tensor([0, 1])), r"\(2, 6\); needed: \(3, 6\)")
    refused(AttentionRNN("gru", D, 9, M, "additive"), state, r"h has the shape \(3, 6\); needed: \(3, 9\)")
    refused(
        mixer, {**state, "memory_values": state["memory_values"].double()}, "float64; needed: torch.float32"
    )
    with pytest.raises(ValueError, match="can't begin without one"):
        mixer.init_state(B)
    with pytest.raises(ValueError, match="as wide as the memory, not 6 and 7: set score=general"):
        AttentionRNN("gru", D, 6, M, "dot")
