"""Fast paths equal their reference in outputs, states and gradients; which path runs is recorded."""

from contextlib import nullcontext

import pytest
import torch
from torch import Tensor

from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import ElmanCell, GRUCell, LSTMCell
from foveal.layers.norm import LayerNorm, RMSNorm
from foveal.ops.attention.dot_product import (
    MAX_PRODUCT_KEYS,
    MAX_PRODUCT_KEYS_PER_WIDTH,
    attention,
    attention_reference,
    causal_mask,
)
from foveal.ops.jit.dispatch import record_paths, reference_only, use_fast_path
from foveal.ops.recurrent.cells import GATE_SATURATION
from tests.support.gradients import gradient_of

B, T, D, H = 4, 6, 5, 3
CELLS = {
    "elman": lambda: ElmanCell(D, H),
    "elman-relu": lambda: ElmanCell(D, H, "relu"),
    "lstm": lambda: LSTMCell(D, H),
    "gru": lambda: GRUCell(D, H),
}


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def gradients(outputs: list[Tensor], wanted: list[Tensor]) -> list[Tensor]:
    loss = torch.stack([(out * torch.arange(out.numel()).view_as(out).cos()).sum() for out in outputs]).sum()
    return list(torch.autograd.grad(loss, wanted))


@pytest.mark.parametrize("name", list(CELLS))
@pytest.mark.parametrize("lengths", [None, [T, 3, 1, 0], [2, 2, 0, 1]])
@pytest.mark.parametrize("size", [0.8, 30.0])
def test_fused_recurrence_equals_its_reference(name, lengths, size):
    """Also with large numbers: what shuts the LSTM's gates in the padding must stay out of their reach."""
    mixer = Recurrent(CELLS[name]()).double()
    x, weights = torch.randn(B, T, D, dtype=torch.float64), list(mixer.parameters())
    start = {part: torch.randn(B, H, dtype=torch.float64) for part in mixer.cell.sizes}
    for weight in weights:
        torch.nn.init.uniform_(weight, -0.8, 0.8)
    held = None if lengths is None else torch.tensor(lengths)
    found = []
    for path in (reference_only(), nullcontext()):
        inputs = [x.mul(size).requires_grad_(), *(part.clone().requires_grad_() for part in start.values())]
        with path, record_paths() as ran:
            y, last = mixer(inputs[0], dict(zip(start, inputs[1:], strict=True)), lengths=held)
        outputs = [y, *last.values()]
        found.append(([*outputs, *gradients(outputs, [*inputs, *weights])], ran))
    (reference, first), (fast, second) = found
    cell = type(mixer.cell).__name__
    assert (first[0], second) == (f"{cell}:reference", [f"{cell}:fused"])
    for a, b in zip(fast, reference, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_shut_gates_are_exact(dtype):
    shut = torch.tensor([-GATE_SATURATION, GATE_SATURATION], dtype=dtype).sigmoid()
    assert shut.tolist() == [0.0, 1.0]


def test_padding_leaves_the_cell_state_bit_for_bit():
    """fused_lstm: f = 1 and i = 0 exactly, so c is carried, not recomputed."""
    mixer = Recurrent(LSTMCell(D, H))
    start = {"h": torch.randn(2, H), "c": torch.randn(2, H)}
    _, last = mixer(torch.randn(2, T, D), start, lengths=torch.tensor([0, T]))
    assert torch.equal(last["c"][0], start["c"][0])
    assert torch.equal(last["h"][0], start["h"][0])


@pytest.mark.parametrize("mask", ["none", "causal", "window", "holes"])
def test_fused_attention_equals_its_reference(mask):
    q, k, v = (torch.randn(B, 2, T, D, dtype=torch.float64, requires_grad=True) for _ in range(3))
    visible = {"window": causal_mask(T, 3)[None, None], "holes": torch.rand(B, 1, T, T) < 0.4}.get(mask)
    with record_paths() as ran:
        y = attention(q, k, v, visible, causal=mask == "causal")
    assert ran == ["attention:fused"]
    expected = attention_reference(q, k, v, visible, causal=mask == "causal")
    close(y, expected)
    for a, b in zip(gradients([y], [q, k, v]), gradients([expected], [q, k, v]), strict=True):
        close(a, b)


@pytest.mark.parametrize("path", [reference_only, nullcontext])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_query_that_sees_nothing_gets_zeros(path, dtype):
    q, k, v = (torch.randn(B, 2, T, 8, dtype=dtype, requires_grad=True) for _ in range(3))
    visible = torch.ones(B, 1, T, T, dtype=torch.bool)
    visible[0] = False
    visible[1, :, 2] = False
    with path():
        y = attention(q, k, v, visible)
        y.square().sum().backward()
    assert y[0].eq(0).all()
    assert y[1, :, 2].eq(0).all()
    assert y[2].ne(0).all()
    assert all(gradient_of(part).isfinite().all() for part in (q, k, v))
    assert all(gradient_of(part)[0].eq(0).all() for part in (q, k, v))


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
def test_fused_norm_equals_its_reference(norm):
    layer = norm(D).double()
    x = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    y = layer(x)
    with reference_only():
        expected = layer(x)
    close(y, expected)
    wanted = [x, *layer.parameters()]
    for a, b in zip(gradients([y], wanted), gradients([expected], wanted), strict=True):
        close(a, b)


@pytest.mark.parametrize(
    ("dtype", "keys", "width", "path"),
    [
        (torch.bfloat16, MAX_PRODUCT_KEYS, 64, "products"),
        (torch.bfloat16, MAX_PRODUCT_KEYS + 1, 128, "fused"),
        (torch.bfloat16, 8 * MAX_PRODUCT_KEYS_PER_WIDTH, 8, "products"),
        (torch.bfloat16, 8 * MAX_PRODUCT_KEYS_PER_WIDTH + 1, 8, "fused"),
        (torch.float32, 2, 64, "fused"),
    ],
)
def test_short_attention_in_bfloat16_takes_plain_products(dtype, keys, width, path):
    q, k, v = (torch.randn(1, 1, keys, width, dtype=dtype) for _ in range(3))
    with record_paths() as ran:
        attention(q, k, v, causal=True)
    assert ran == [f"attention:{path}"]


def test_the_record():
    """One entry a choice, in order, while a record is open; the innermost record has it."""
    assert use_fast_path("product", "fused", True)
    with record_paths() as outer:
        assert use_fast_path("product", "fused", True)
        with record_paths() as inner, reference_only():
            assert not use_fast_path("product", "fused", True)
        assert not use_fast_path("sum", "grouped", False)
    assert use_fast_path("product", "fused", True)
    assert outer == ["product:fused", "sum:reference"]
    assert inner == ["product:reference"]


def test_reference_only_ends_with_an_error():
    with pytest.raises(ZeroDivisionError), reference_only():
        raise ZeroDivisionError
    assert use_fast_path("product", "fused", True)
