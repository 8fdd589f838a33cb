"""Self-attention on sequences long enough for its fast paths, whole, ragged and in chunks."""

from contextlib import nullcontext

import pytest
import torch
from torch import Tensor

from foveal.core.state import detach_state
from foveal.laws.module_states import state_entries
from foveal.layers.mixers.self_attention import SelfAttention
from foveal.ops.attention.dot_product import QUERY_CHUNK
from foveal.ops.jit.dispatch import record_paths, reference_only

B, D, T = 3, 8, 2 * QUERY_CHUNK + 20
LENGTHS = torch.tensor([T, QUERY_CHUNK + 3, 0])


def layer(window: int, dtype: torch.dtype = torch.float64) -> SelfAttention:
    made = SelfAttention(D, 2, window, rotary=True).to(dtype)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.uniform_(-0.7, 0.7)
    return made


def paths(ran: list[str]) -> list[str]:
    """How attention was computed."""
    return [path for path in ran if path.startswith("attention:")]


def outcome(made: SelfAttention, x: Tensor, state: object, lengths: Tensor | None) -> list[Tensor]:
    x = x.detach().requires_grad_()
    y, after = made(x, state, lengths=lengths)
    outputs = [y, *(part for part in state_entries(made, after) if part.is_floating_point())]
    generator = torch.Generator().manual_seed(1)
    weights = [torch.randn(out.shape, generator=generator) for out in outputs]
    loss = sum((out * weight.to(out.dtype)).sum() for out, weight in zip(outputs, weights, strict=True))
    return [*outputs, *torch.autograd.grad(loss, [x, *made.parameters()])]


@pytest.mark.parametrize(("window", "seen"), [(0, T), (30, 30)])
@pytest.mark.parametrize("path", [reference_only, nullcontext])
def test_the_last_output_of_one_layer_depends_on_every_input_of_its_window(path, window, seen):
    x = torch.randn(1, T, D, dtype=torch.float64, requires_grad=True)
    with path():
        y, _ = layer(window)(x)
    (gradient,) = torch.autograd.grad(y[0, -1].sum(), x)
    assert gradient[0].ne(0).any(1).nonzero().flatten().tolist() == [*range(T - seen, T)]


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("window", [0, 1, 30, QUERY_CHUNK + 50, 2 * T])
def test_long_sequences_equal_the_reference(window, carried, ragged):
    """From the start and from a state that not every row has filled: outputs, state, all gradients."""
    made, x = layer(window), torch.randn(B, T, D, dtype=torch.float64)
    state = None
    if carried:
        _, state = made(torch.randn(B, 40, D, dtype=torch.float64), lengths=torch.tensor([40, 7, 0]))
        state = detach_state(state)
    found = []
    for path in (reference_only(), nullcontext()):
        with path, record_paths() as ran:
            found.append(outcome(made, x, state, LENGTHS if ragged else None))
    pieces = window and (carried or window < T)
    assert paths(ran) == ["attention:chunks" if pieces else "attention:fused"]
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("window", [0, 30])
def test_long_chunks_equal_the_whole(window):
    made, x = layer(window), torch.randn(B, T, D, dtype=torch.float64)
    whole, last = made(x)
    y, state = made(x[:, : QUERY_CHUNK + 9], made.init_state(B, capacity=T))
    z, state = made(x[:, QUERY_CHUNK + 9 :], state)
    torch.testing.assert_close(torch.cat([y, z], 1), whole, rtol=1e-10, atol=1e-10)
    for a, b in zip(state_entries(made, state), state_entries(made, last), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("window", [0, 30])
def test_a_prompt_into_an_empty_cache_needs_no_mask(window):
    made, x = layer(window), torch.randn(B, T, D, dtype=torch.float64)
    with torch.no_grad(), record_paths() as ran:
        y, _ = made(x, made.init_state(B, capacity=2 * T), lengths=LENGTHS)
        z, _ = made(x, lengths=LENGTHS)
    torch.testing.assert_close(y, z, rtol=1e-10, atol=1e-10)
    assert paths(ran) == ["attention:chunks" if window else "attention:fused"] * 2


@pytest.mark.parametrize("window", [0, 30])
def test_long_sequences_in_bfloat16(window):
    """Under autocast, from none, a float32 and a bfloat16 state, close to float32."""
    made, x = layer(window, torch.float32), torch.randn(B, T, D)
    with torch.autocast("cpu", torch.bfloat16):
        _, lower = made(x[:, :40])
    _, exact = made(x[:, :40])
    for state, like in [
        (None, None),
        (detach_state(exact), detach_state(exact)),
        (detach_state(lower), detach_state(exact)),
    ]:
        with torch.autocast("cpu", torch.bfloat16):
            found = outcome(made, x, state, LENGTHS)
        expected = outcome(made, x, like, LENGTHS)
        for a, b in zip(found, expected, strict=True):
            assert (a.float() - b).norm() <= 0.05 * b.norm()
