"""Attention to the whole row and to a memory equals torch's on the same weights, on both paths."""

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal import capture
from foveal.core.memory import Memory
from foveal.core.state import select_rows
from foveal.layers.mixers.cross_attention import CrossAttention
from foveal.layers.mixers.full_attention import FullAttention
from foveal.layers.mixers.multi_head_attention import MultiHeadAttention
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import LSTMCell
from foveal.layers.mixers.self_attention import SelfAttention
from foveal.ops.attention.step_by_step import multi_head_attention
from foveal.ops.jit.dispatch import record_paths, reference_only
from foveal.ops.padding import sequence_mask
from tests.support.mixer_rows import randomize

B, T, S, D, M, H = 3, 5, 4, 8, 6, 2
LENGTHS = torch.tensor([T, 2, 4])
MASK = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0], [1, 0, 1, 1]]).bool()


@pytest.fixture(params=["reference", "default"])
def exact(request):
    """float64, on either path."""
    torch.set_default_dtype(torch.float64)
    with reference_only() if request.param == "reference" else nullcontext():
        yield
    torch.set_default_dtype(torch.float32)


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def memory_of(mask: Tensor = MASK) -> Memory:
    vectors = torch.randn(*mask.shape, M) * mask[:, :, None]
    return Memory(vectors.requires_grad_(), mask, torch.randn(len(mask), M))


def same(
    ours: MultiHeadAttention, y: Tensor, theirs: nn.MultiheadAttention, expected: Tensor, *inputs: Tensor
) -> None:
    """Outputs, and gradients to the inputs, the output layer, and the bias of the values."""
    close(y, expected)
    direction = torch.randn(y.shape)
    found = torch.autograd.grad(y, [*inputs, ours.output.weight, ours.value.bias], direction)
    wanted = [*inputs, theirs.out_proj.weight, theirs.in_proj_bias]
    theirs_found = list(torch.autograd.grad(expected, wanted, direction))
    theirs_found[-1] = theirs_found[-1].chunk(3)[2]
    for a, b in zip(found, theirs_found, strict=True):
        close(a, b)


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("ragged", [False, True])
def test_the_whole_row_equals_torch(ragged):
    ours = randomize(FullAttention(D, H), 0.7)
    theirs = nn.MultiheadAttention(D, H, batch_first=True)
    parts = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.data = torch.cat([part.weight.detach() for part in parts])
    theirs.in_proj_bias.data = torch.cat([part.bias.detach() for part in parts])
    theirs.out_proj.load_state_dict(ours.output.state_dict())
    x = torch.randn(B, T, D, requires_grad=True)
    lengths = LENGTHS if ragged else None
    y, state = ours(x, lengths=lengths)
    hidden = ~sequence_mask(LENGTHS, T) if ragged else None
    expected, _ = theirs(x, x, x, key_padding_mask=hidden, need_weights=False)
    same(ours, y, theirs, expected if hidden is None else expected.masked_fill(hidden[:, :, None], 0.0), x)
    assert state is None


@pytest.mark.usefixtures("exact")
def test_a_memory_equals_torch():
    ours = randomize(CrossAttention(D, H, M), 0.7)
    theirs = nn.MultiheadAttention(D, H, kdim=M, vdim=M, batch_first=True)
    parts = {"q": ours.query, "k": ours.key, "v": ours.value}
    for name, part in parts.items():
        getattr(theirs, f"{name}_proj_weight").data = part.weight.detach()
    theirs.in_proj_bias.data = torch.cat([part.bias.detach() for part in parts.values()])
    theirs.out_proj.load_state_dict(ours.output.state_dict())
    x, memory = torch.randn(B, T, D, requires_grad=True), memory_of()
    y, _ = ours(x, ours.init_state(B, memory=memory))
    vectors = memory.vectors
    expected, _ = theirs(x, vectors, vectors, key_padding_mask=~MASK, need_weights=False)
    same(ours, y, theirs, expected, x, vectors)


@pytest.mark.usefixtures("exact")
def test_the_whole_row_is_the_last_step():
    """`ops.attention.step_by_step.multi_head_attention`, from which the layer differs by its biases."""
    ours = randomize(FullAttention(D, H), 0.7)
    parts = (ours.query, ours.key, ours.value, ours.output)
    for part in parts:
        nn.init.zeros_(part.bias)
    x = torch.randn(B, T, D)
    W_q, W_k, W_v, W_o = (part.weight for part in parts)
    close(ours(x)[0], multi_head_attention(x, W_q, W_k, W_v, W_o, H))


@pytest.mark.usefixtures("exact")
def test_rotary():
    """In causal attention, whose rotary positions have tests of their own, the last one sees the row too."""
    ours, causal = randomize(FullAttention(D, H, rotary=True), 0.9), SelfAttention(D, H, rotary=True)
    causal.load_state_dict(ours.state_dict())
    x = torch.randn(B, T, D)
    (y, _), (expected, _) = ours(x, lengths=LENGTHS), causal(x, lengths=LENGTHS)
    last = torch.arange(B), LENGTHS - 1
    close(y[last], expected[last])
    assert (ours(x)[0][:, 0] - causal(x)[0][:, 0]).abs().amax(1).min() > 1e-2
    assert (ours(x)[0].flip(1) - ours(x.flip(1))[0]).abs().amax((1, 2)).min() > 1e-2, "it knows the order"


@pytest.mark.usefixtures("exact")
def test_rows_with_nothing_to_see():
    full, x = randomize(FullAttention(D, H), 0.7), torch.randn(B, T, D, requires_grad=True)
    y, _ = full(x, lengths=torch.tensor([0, T, 0]))
    assert y[[0, 2]].eq(0).all()
    assert torch.autograd.grad(y.sum(), x)[0].isfinite().all()
    cross, mask = randomize(CrossAttention(D, H, M), 0.7), MASK.clone()
    mask[1] = False
    memory = memory_of(mask)
    y, _ = cross(x, cross.init_state(B, memory=memory))
    close(y[1], cross.output.bias.detach().expand(T, -1))
    gradients = torch.autograd.grad(y.square().sum(), [x, memory.vectors, *cross.parameters()])
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert gradients[0][1].eq(0).all()


@pytest.mark.usefixtures("exact")
def test_a_row_alone_with_its_own_memory():
    """Without the places that its mask leaves out."""
    cross, x, memory = randomize(CrossAttention(D, H, M), 0.7), torch.randn(B, T, D), memory_of()
    whole, _ = cross(x, cross.init_state(B, memory=memory))
    for b in range(B):
        there = MASK[b]
        alone = Memory(memory.vectors[b : b + 1, there], there[there][None], memory.summary[b : b + 1])
        y, _ = cross(x[b : b + 1], cross.init_state(1, memory=alone))
        close(y[0], whole[b])


def test_the_memory_is_projected_once():
    cross = CrossAttention(D, H, M)
    state = cross.init_state(B, memory=memory_of())
    y, after = cross(torch.randn(B, T, D), state)
    assert all(after[name] is state[name] for name in state)
    with torch.no_grad():
        _, later = cross(torch.randn(B, 1, D), select_rows(after, torch.arange(B)))
    assert all(map(torch.equal, later.values(), state.values()))
    y.sum().backward()
    assert cross.key.weight.grad is not None


@pytest.mark.parametrize("name", ["full", "cross"])
def test_the_weights_that_a_tap_shows(name):
    """They are what the values were weighed with; looking changes nothing."""
    x, memory = torch.randn(B, T, D), memory_of()
    mixer: Any
    if name == "full":
        mixer, lengths, visible = randomize(FullAttention(D, H), 0.7), LENGTHS, sequence_mask(LENGTHS, T)
        state, source = None, x * visible[:, :, None]
    else:
        mixer, lengths, visible = randomize(CrossAttention(D, H, M), 0.7), None, MASK
        state, source = mixer.init_state(B, memory=memory), memory.vectors
    unseen, _ = mixer(x, state, lengths=lengths)
    with capture(mixer) as seen:
        y, _ = mixer(x, state, lengths=lengths)
    assert torch.equal(y, unseen)
    (weights,) = seen["/weights"]
    assert weights.shape == (B, H, T, visible.shape[1])
    assert weights.masked_select(~visible[:, None, None]).eq(0).all()
    values = mixer.value(source).unflatten(2, (H, -1)).transpose(1, 2)
    expected = mixer.output((weights @ values).transpose(1, 2).flatten(2))
    there = slice(None) if lengths is None else visible
    torch.testing.assert_close(y[there], expected[there])


def test_one_position_without_gradients_reads_the_weights_once():
    cross = CrossAttention(D, H, M)
    state = cross.init_state(B, memory=memory_of())
    with torch.no_grad(), record_paths() as ran:
        cross(torch.randn(B, 1, D), state)
    assert ran == ["linear:few_vectors", "attention:fused", "linear:few_vectors"]


@pytest.mark.parametrize("mixer", [FullAttention(64, 4), CrossAttention(64, 4, 48)])
def test_initialisation(mixer):
    for part in (mixer.query, mixer.key, mixer.value, mixer.output):
        assert abs(float(part.weight.detach().std()) / 0.02 - 1) < 0.1
        assert part.bias.eq(0).all()


def refused(mixer, state, message):
    with pytest.raises(ValueError, match=message) as error:
        mixer(torch.zeros(B, T, D), state)
    assert "\n" not in str(error.value)


def test_what_is_refused():
    full, cross, memory = FullAttention(D, H), CrossAttention(D, H, M), memory_of()
    state = cross.init_state(B, memory=memory)
    assert full.init_state(B, 7) is None
    refused(full, state, "can't go on from a state")
    refused(cross, None, "can't go on from nothing: begin with init_state")
    refused(
        cross,
        Recurrent(LSTMCell(D, D)).init_state(B),
        "it has c, h; needed: memory_keys, memory_mask, memory_values",
    )
    refused(CrossAttention(D, 4, M), state, r"keys has the shape \(3, 4, 2, 4\); needed: \(3, any, 4, 2\)")
    refused(cross, select_rows(state, torch.tensor([0])), r"\(1, 4, 2, 4\); needed: \(3, any, 2, 4\)")
    refused(cross, {**state, "memory_keys": state["memory_keys"].double()}, "float64; needed: torch.float32")
    with pytest.raises(ValueError, match="can't begin without one: begin with init_state"):
        cross.init_state(B)
    with pytest.raises(ValueError, match="a memory of 3 rows; needed: 2"):
        cross.init_state(2, memory=memory)
    for make in (lambda: FullAttention(D, 3), lambda: CrossAttention(D, 3, M)):
        with pytest.raises(ValueError, match="width 8 is not a multiple of 3 heads"):
            make()
