"""Every operation's gradient, in float64, against finite differences."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from foveal.ops.attention.dot_product import attention, attention_reference, attention_weights, causal_mask
from foveal.ops.attention.rotary import apply_rotary
from foveal.ops.jit.dispatch import reference_only
from foveal.ops.normalization import layer_norm, rms_norm
from foveal.ops.padding import last_valid, reverse_by_length, zero_padding
from foveal.ops.recurrent import cells

B, T, D, H = 3, 4, 3, 2
LENGTHS = torch.tensor([T, 2, 0])
WINDOW = causal_mask(T, 2)[None, None]
HOLES = torch.rand(B, 1, T, T, generator=torch.Generator().manual_seed(5)) < 0.5


def numbers(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def stepped(step, sizes, lengths=None):
    """The generic recurrence over (projected, *state, *weights), with a state of `sizes` parts."""

    def run(projected, *rest):
        state, weights = dict(enumerate(rest[:sizes])), rest[sizes:]

        def one(p, state):
            new = step(p, *(state[i] for i in range(sizes)), *weights)
            new = new if isinstance(new, tuple) else (new,)
            return new[0], dict(enumerate(new))

        y, after = cells.run_recurrence(one, projected, state, lengths)
        return y, *after.values()

    return run


def fused(kernel, sizes, *settings):
    def run(x, *rest):
        return kernel(x, *rest[:sizes], list(rest[sizes:]), *settings)

    return run


def kernel_inputs(sizes: int, gates: int) -> tuple[Tensor, ...]:
    """x, the state, and W_x, W_h, b_x, b_h."""
    weights = (numbers(gates * H, D), numbers(gates * H, H), numbers(gates * H), numbers(gates * H))
    return numbers(B, T, D), *(numbers(B, H) for _ in range(sizes)), *weights


qkv = [(B, 2, T, D)] * 3
OPERATIONS: dict[str, tuple[Callable[..., Any], Sequence[tuple[int, ...]]]] = {
    "attention_weights": (partial(attention_weights, visible=HOLES), qkv[:2]),
    "attention_weights-all": (attention_weights, qkv[:2]),
    "attention_reference": (partial(attention_reference, causal=True), qkv),
    "attention-causal": (partial(attention, causal=True), qkv),
    "attention-window": (partial(attention, visible=WINDOW), qkv),
    "attention-holes": (partial(attention, visible=HOLES), qkv),
    "apply_rotary": (partial(apply_rotary, positions=torch.tensor([[0, 1, 7, 300]])), [(B, T, 2, 4)]),
    "layer_norm": (partial(layer_norm, epsilon=1e-2), [(B, D), (D,), (D,)]),
    "rms_norm": (partial(rms_norm, epsilon=1e-2), [(B, D), (D,)]),
    "zero_padding": (partial(zero_padding, lengths=LENGTHS), [(B, T, D)]),
    "last_valid": (partial(last_valid, lengths=LENGTHS), [(B, D), (B, T, D)]),
    "reverse_by_length": (partial(reverse_by_length, lengths=LENGTHS), [(B, T, D)]),
    "elman": (stepped(cells.elman_step, 1), [(B, T, H), (B, H), (H, H)]),
    "elman-ragged": (stepped(cells.elman_step, 1, LENGTHS), [(B, T, H), (B, H), (H, H)]),
    "elman-relu": (stepped(partial(cells.elman_step, relu=True), 1), [(B, T, H), (B, H), (H, H)]),
    "lstm": (stepped(cells.lstm_step, 2), [(B, T, 4 * H), (B, H), (B, H), (4 * H, H)]),
    "lstm-ragged": (stepped(cells.lstm_step, 2, LENGTHS), [(B, T, 4 * H), (B, H), (B, H), (4 * H, H)]),
    "gru-after": (stepped(cells.gru_step_reset_after, 1), [(B, T, 3 * H), (B, H), (3 * H, H), (H,)]),
    "gru-before": (stepped(cells.gru_step_reset_before, 1), [(B, T, 3 * H), (B, H), (3 * H, H)]),
}
KERNELS = {
    "elman": (fused(cells.fused_elman, 1, False, LENGTHS), 1, 1),
    "elman-relu": (fused(cells.fused_elman, 1, True, LENGTHS), 1, 1),
    "lstm": (fused(cells.fused_lstm, 2, LENGTHS), 2, 4),
    "lstm-whole": (fused(cells.fused_lstm, 2, None), 2, 4),
    "gru": (fused(cells.fused_gru, 1, LENGTHS), 1, 3),
}


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("name", list(OPERATIONS))
def test_gradient(name, reference):
    operation, shapes = OPERATIONS[name]
    inputs = tuple(numbers(*shape) for shape in shapes)
    with reference_only() if reference else nullcontext():
        assert gradcheck(operation, inputs, atol=1e-7, rtol=1e-5)


@pytest.mark.parametrize("name", list(KERNELS))
def test_gradient_of_a_kernel(name):
    kernel, sizes, gates = KERNELS[name]
    assert gradcheck(kernel, kernel_inputs(sizes, gates), atol=1e-7, rtol=1e-5)
