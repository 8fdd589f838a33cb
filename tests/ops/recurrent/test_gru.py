"""The GRU by a product and a kernel a step equals its equation; float64 keeps torch's kernel."""

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import GRUCell
from foveal.ops.jit import launch
from foveal.ops.jit.dispatch import record_paths, reference_only
from foveal.ops.recurrent import gru
from foveal.ops.recurrent.cells import fused_gru

pytestmark = pytest.mark.usefixtures("kernels")
D = 7
# B, T, H: one number of each, vectors that are whole and that are not, more than one task.
SIZES = [(1, 1, 1), (3, 5, 16), (4, 9, 40), (2, 33, 6), (40, 6, 128)]
TOLERANCE = 3e-6


@pytest.fixture
def kernels():
    """Made or loaded: it is the dispatcher's to ask before it calls."""
    assert gru.gru_kernel_usable(torch.ones(1))


def drawn(B: int, T: int, H: int, size: float = 1.0) -> list[Tensor]:
    """Return random x, h and W_x, W_h, b_x, b_h."""
    shapes = [(B, T, D), (B, H), (3 * H, D), (3 * H, H), (3 * H,), (3 * H,)]
    scales = [size, 1.0, 0.5, H**-0.5, 0.5, 0.5]
    return [
        (torch.randn(shape) * scale).requires_grad_() for shape, scale in zip(shapes, scales, strict=True)
    ]


def everything(outputs: list[Tensor], inputs: list[Tensor]) -> list[Tensor]:
    """Outputs, and the gradient of a fixed functional of them to each input."""
    loss: Any = sum((out * torch.arange(out.numel()).view_as(out).cos()).sum() for out in outputs)
    return [*outputs, *torch.autograd.grad(loss, inputs, retain_graph=True)]


def close(found: list[Tensor], expected: list[Tensor], tolerance: float = TOLERANCE) -> None:
    for a, b in zip(found, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert (a - b).norm() <= tolerance * b.norm()


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("ragged", [False, True])
def test_layer_equals_its_equation(size, ragged):
    B, T, H = size
    mixer = Recurrent(GRUCell(D, H))
    for weight in mixer.parameters():
        nn.init.uniform_(weight, -1.5 / H**0.5, 1.5 / H**0.5)
    x, h, *_ = drawn(*size)
    lengths = torch.randint(0, T + 1, (B,)) if ragged else None
    found = []
    for path in (reference_only(), nullcontext()):
        with path, record_paths() as ran:
            y, last = mixer(x, {"h": h}, lengths=lengths)
        found.append(everything([y, last["h"]], [x, h, *mixer.parameters()]))
    assert ran == ["GRUCell:kernel"]
    close(found[1], found[0])


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_equals_torch(size: tuple[int, int, int], scale: float):
    """With both of torch's biases, and where every gate is open or shut."""
    inputs = drawn(*size, scale)
    x, h, *weights = inputs
    found = everything([*gru.gru_kernel(x, h, weights, None)], inputs)
    close(found, everything([*fused_gru(x, h, weights, None)], inputs))


def test_padding_leaves_the_state_bit_for_bit():
    x, h, *weights = drawn(3, 5, 16)
    y, last = gru.gru_kernel(x, h, weights, torch.tensor([0, 2, 5]))
    assert torch.equal(last[0], h[0])
    assert torch.equal(last[1], y[1, 1])
    assert torch.equal(y[0], h[:1].expand(5, -1))


def test_small_states_keep_their_precision():
    """tanh of a small number is that number, not the difference of nearly equal ones."""
    x, h, *weights = drawn(2, 4, 16)
    small = x * 1e-5, h * 1e-5, [*weights[:2], *(0 * bias for bias in weights[2:])]
    found, expected = (run(*small, None)[0] for run in (gru.gru_kernel, fused_gru))
    close([found], [expected])


def test_without_gradients_the_same_bits():
    x, h, *weights = drawn(4, 9, 32)
    y, last = gru.gru_kernel(x, h, weights, None)
    with torch.no_grad():
        again = gru.gru_kernel(x, h, weights, None)
    assert all(map(torch.equal, again, (y, last)))
    assert not again[0].requires_grad


def test_going_back_twice():
    """What the first pass needed is there for the second."""
    inputs = drawn(4, 9, 32)
    x, h, *weights = inputs
    outputs = [*gru.gru_kernel(x, h, weights, None)]
    assert all(map(torch.equal, everything(outputs, inputs), everything(outputs, inputs)))


@pytest.mark.parametrize("lengths", [None, [6, 0, 2] * 15])
def test_tasks_share_the_rows(monkeypatch, lengths):
    inputs = drawn(45, 6, 16)
    x, h, *weights = inputs
    lengths = None if lengths is None else torch.tensor(lengths)
    alone = everything([*gru.gru_kernel(x, h, weights, lengths)], inputs)
    monkeypatch.setattr(gru, "NUMBERS_PER_TASK", 100)
    torch.set_num_threads(2)
    try:
        shared = everything([*gru.gru_kernel(x, h, weights, lengths)], inputs)
    finally:
        torch.set_num_threads(1)
    close(shared, alone)


def test_lengths_of_any_whole_numbers():
    x, h, *weights = drawn(4, 6, 16)
    lengths = torch.tensor([5, 2, 6, 0])
    expected = gru.gru_kernel(x, h, weights, lengths)
    assert all(map(torch.equal, gru.gru_kernel(x, h, weights, lengths.int()), expected))


def test_lower_precision():
    """bfloat16 in the products alone: near the float32 result, and the state is float32."""
    mixer, x = Recurrent(GRUCell(D, 64)), torch.randn(8, 20, D, requires_grad=True)
    wanted = [x, *mixer.parameters()]
    y, last = mixer(x)
    expected = everything([y, last["h"]], wanted)
    with torch.autocast("cpu", torch.bfloat16), record_paths() as ran:
        y, last = mixer(x)
        found = everything([y, last["h"]], wanted)
    assert ran == ["GRUCell:kernel"]
    close(found, expected, 0.02)
    assert not torch.equal(y, expected[0])


def test_where_there_is_no_kernel(monkeypatch):
    """Another precision, or kernels switched off, uses torch's own GRU."""
    mixer, x = Recurrent(GRUCell(D, 16)), torch.randn(2, 3, D)
    expected, _ = mixer(x)
    with record_paths() as ran:
        mixer.double()(x.double())
    monkeypatch.setenv("FOVEAL_KERNELS", "off")
    launch._address.cache_clear()
    for kernel in (gru._forward, gru._backward):
        monkeypatch.setattr(kernel, "_address", -1)
    with record_paths() as also:
        y, _ = mixer.float()(x)
    launch._address.cache_clear()
    assert (ran, also) == (["GRUCell:fused"], ["GRUCell:fused"])
    torch.testing.assert_close(y, expected)
