"""Additive attention by its kernel equals its equation in float64, step by step, with all gradients."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor

from foveal.core.memory import Memory
from foveal.layers.mixers.attention_rnn import AttentionRNN
from foveal.ops.attention import additive
from foveal.ops.attention.additive import additive_attention
from foveal.ops.jit import launch
from foveal.ops.jit.dispatch import record_paths, reference_only
from foveal.ops.jit.launch import Kernel
from tests.support.mixer_rows import randomize

# B, T, S, D, M: one number of each, vectors that are whole and that are not.
SIZES = [(1, 2, 1, 1, 1), (2, 3, 16, 16, 32), (5, 4, 21, 40, 7), (3, 2, 40, 33, 48)]
TOLERANCE = 3e-6


def drawn(B: int, T: int, S: int, D: int, M: int, size: float = 1.0) -> tuple[list[Tensor], Tensor]:
    """keys, v, values and T queries; a mask with holes, of several rows the first hidden whole."""
    shapes, scales = [(B, S, D), (D,), (B, S, M), *[(B, D)] * T], [size, size, 1.0, *[size] * T]
    mask = torch.rand(B, S) < 0.7
    mask[:, S // 2] = True
    mask[0] = B == 1
    return [(torch.randn(s) * scale).requires_grad_() for s, scale in zip(shapes, scales, strict=True)], mask


def written_out(keys: Tensor, v: Tensor, values: Tensor, mask: Tensor, _: int) -> Callable[[Tensor], Tensor]:
    """Row by row, of what is there alone."""

    def one(q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        e = (q + keys).tanh() @ v
        a = (e - e.detach().amax()).exp()
        return a / a.sum() @ values

    def look(q: Tensor) -> Tensor:
        there = [
            one(q[b], keys[b, m], values[b, m]) if m.any() else 0 * values[b, 0] for b, m in enumerate(mask)
        ]
        return torch.stack(there)

    return look


def contexts(
    inputs: list[Tensor], mask: Tensor, path: Callable[..., Any] = additive_attention
) -> list[Tensor]:
    """Of each query, which hears of the context before, as a decoder's does."""
    keys, v, values, *queries = inputs
    look, found = path(keys, v, values, mask, len(queries)), list[Tensor]()
    for q in queries:
        found.append(look(q + found[-1].mean() if found else q))
    return found


def gradients(
    outputs: list[Tensor], inputs: list[Tensor], retain_graph: bool = False, allow_unused: bool = False
) -> list[Tensor]:
    """Of a fixed functional."""
    loss: Any = sum((out * torch.arange(out.numel()).view_as(out).cos()).sum() for out in outputs)
    return list(torch.autograd.grad(loss, inputs, retain_graph=retain_graph, allow_unused=allow_unused))


def everything(
    inputs: list[Tensor], mask: Tensor, path: Callable[..., Any] = additive_attention
) -> list[Tensor]:
    outputs = contexts(inputs, mask, path)
    return [*outputs, *gradients(outputs, inputs)]


def exact(inputs: list[Tensor], mask: Tensor) -> list[Tensor]:
    """By the equation in float64."""
    return everything([part.detach().double().requires_grad_() for part in inputs], mask, written_out)


def errors(found: list[Tensor], expected: list[Tensor]) -> list[float]:
    """Return the errors relative to the size of the expected tensors."""
    assert all(a.shape == b.shape and a.isfinite().all() for a, b in zip(found, expected, strict=True))
    pairs = ((a.detach(), b.detach()) for a, b in zip(found, expected, strict=True))
    return [float((a - b).norm() / b.norm().clamp(min=1e-30)) for a, b in pairs]


def close(found: list[Tensor], expected: list[Tensor]) -> None:
    assert max(errors(found, expected), default=0.0) <= TOLERANCE


@pytest.fixture(params=[1, 2])
def threads(request):
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(1)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_kernel_equals_its_equation(size, threads):
    inputs, mask = drawn(*size)
    with record_paths() as ran:
        found = everything(inputs, mask)
    assert ran == ["additive:kernel"]
    close(found, exact(inputs, mask))


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("scale", [0.01, 30.0, 1e4])
def test_as_near_as_torchs_operations(size: tuple[int, int, int, int, int], scale: float):
    """Where weights are all alike, and gradients nearly cancel; where scores are of size 1000 and of 10^8."""
    inputs, mask = drawn(*size, scale)
    expected = exact(inputs, mask)
    with reference_only():
        known = errors(everything(inputs, mask), expected)
    found = errors(everything(inputs, mask), expected)
    assert all(a <= TOLERANCE + 5 * b for a, b in zip(found, known, strict=True))


def test_other_paths_equal_the_equation():
    inputs, mask = drawn(*SIZES[2])
    for path, dtype in ((reference_only, torch.float32), (nullcontext, torch.float64)):
        with path(), record_paths() as ran:
            found = everything([part.detach().to(dtype).requires_grad_() for part in inputs], mask)
        assert ran == ["additive:reference"]
        close(found, exact(inputs, mask))


def test_what_is_hidden_is_never_read():
    """NaN there changes no bit, and gets no gradient."""
    (keys, v, values, *queries), mask = drawn(*SIZES[2])
    expected = everything([keys, v, values, *queries], mask)
    holes = [
        part.detach().masked_fill(~mask[:, :, None], torch.nan).requires_grad_() for part in (keys, values)
    ]
    found = everything([holes[0], v, holes[1], *queries], mask)
    assert all(map(torch.equal, found, expected))
    at_keys, at_values = found[len(queries)], found[len(queries) + 2]
    assert at_keys[~mask].eq(0).all()
    assert at_values[~mask].eq(0).all()


def test_any_number_of_threads_and_no_gradients_give_the_same_bits():
    inputs, mask = drawn(*SIZES[2])
    expected = everything(inputs, mask)
    torch.set_num_threads(3)
    try:
        assert all(map(torch.equal, everything(inputs, mask), expected))
    finally:
        torch.set_num_threads(1)
    with torch.no_grad():
        found = contexts(inputs, mask)
    assert all(map(torch.equal, found, expected[: len(found)]))
    assert not found[0].requires_grad


def test_going_back_twice():
    """What was returned the first time stays as it is, and no step needs what it overwrote."""
    inputs, mask = drawn(*SIZES[2])
    outputs = contexts(inputs, mask)
    first = gradients(outputs, inputs, retain_graph=True)
    kept = [part.clone() for part in first]
    assert all(map(torch.equal, gradients(outputs, inputs, retain_graph=True), kept))
    assert all(map(torch.equal, first, kept))
    squares: Any = sum(out.square().sum() for out in outputs)
    once = torch.autograd.grad(squares, inputs, retain_graph=True)
    again = torch.autograd.grad(squares, inputs, create_graph=True)
    assert all(map(torch.equal, again, once))
    with pytest.raises(RuntimeError, match="once_differentiable"):
        again[0].sum().backward()


def test_steps_gather_in_one_buffer(monkeypatch):
    """On the way back all steps write into the same three gradients, which the last one makes."""
    inputs, mask = drawn(2, 5, 6, 16, 16)
    buffers, run = [], Kernel.__call__

    def watched(kernel: Kernel, *given: Any) -> None:
        if kernel is additive._backward:
            buffers.append([part.data_ptr() for part in given[10:13]])
        run(kernel, *given)

    monkeypatch.setattr(Kernel, "__call__", watched)
    outputs = contexts(inputs, mask)
    gradients(outputs, inputs)
    assert buffers == [buffers[0]] * 5


@pytest.mark.parametrize("used", [[0], [1, 2], [3], [0, 3]], ids=str)
@pytest.mark.parametrize("wanted", [[0], [2], [3], [1, 4], [0, 6]], ids=str)
def test_part_of_the_way_back(used, wanted):
    """A loss of some contexts, gradients of some inputs, whose queries don't know each other."""
    inputs, mask = drawn(*SIZES[2])
    found, expected = list[Tensor](), list[Tensor]()
    for results, path in ((found, nullcontext), (expected, reference_only)):
        with path():
            look = additive_attention(inputs[0], inputs[1], inputs[2], mask, 4)
        outputs = [look(q) for q in inputs[3:]]
        leaves = [inputs[i] for i in wanted]
        results += gradients([outputs[t] for t in used], leaves, allow_unused=True)
    assert [part is None for part in found] == [part is None for part in expected]
    close([part for part in found if part is not None], [part for part in expected if part is not None])


def test_constants_need_no_gradient():
    """An encoder that is frozen: neither keys nor values ask for one."""
    inputs, mask = drawn(*SIZES[2])
    keys, v, values, *queries = inputs
    expected = gradients(contexts(inputs, mask), [v, *queries])
    constant = [keys.detach(), v, values.detach(), *queries]
    assert all(map(torch.equal, gradients(contexts(constant, mask), [v, *queries]), expected))


def test_others_read_the_memory_too():
    """Gradients add up when two decoders, a product of the keys, and a hook use the same memory."""
    inputs, mask = drawn(*SIZES[2])

    def outputs(inputs: list[Tensor], path: Callable[..., Any]) -> list[Tensor]:
        first = contexts(inputs, mask, path)
        return [
            *first,
            *contexts([*inputs[:3], *first[:0], *inputs[3:5]], mask, path),
            inputs[0] * 3,
            inputs[2] + 1,
        ]

    seen = []
    handle = inputs[0].register_hook(lambda g: seen.append(g.clone()))
    found = gradients(outputs(inputs, additive_attention), inputs)
    handle.remove()
    twin = [part.detach().double().requires_grad_() for part in inputs]
    close(found, gradients(outputs(twin, written_out), twin))
    assert torch.equal(seen[0], found[0])


def test_a_memory_that_was_changed_is_noticed():
    inputs, mask = drawn(*SIZES[1])
    keys = inputs[0] * 1
    outputs = contexts([keys, *inputs[1:]], mask)
    with torch.no_grad():
        keys += 1
    with pytest.raises(RuntimeError, match="modified inplace"):
        gradients(outputs, inputs)


def test_where_there_is_no_kernel(monkeypatch):
    """Kernels switched off; and a single look at a small memory, for which torch is faster."""
    inputs, mask = drawn(*SIZES[2])
    expected = everything(inputs, mask)
    with record_paths() as single:
        contexts(inputs[:4], mask)
    monkeypatch.setattr(additive, "MIN_KERNEL_NUMBERS", 100)
    with record_paths() as large:
        contexts(inputs[:4], mask)
    monkeypatch.setenv("FOVEAL_KERNELS", "off")
    launch._address.cache_clear()
    for kernel in (additive._forward, additive._backward):
        monkeypatch.setattr(kernel, "_address", -1)
    with record_paths() as off:
        found = everything(inputs, mask)
    launch._address.cache_clear()
    assert (single, large, off) == (["additive:reference"], ["additive:kernel"], ["additive:reference"])
    close(found, expected)


B, T, S, D, M = 4, 7, 9, 5, 6
LENGTHS = torch.tensor([T, 0, 3, 1])


def layer(mixer: AttentionRNN, dtype: torch.dtype, lengths: Tensor | None) -> list[Tensor]:
    """Outputs, final state, and every gradient of two chunks of a decoder of `dtype`."""
    torch.manual_seed(1)
    mixer = mixer.to(dtype)
    mask = torch.rand(B, S) < 0.7
    mask[2] = False
    vectors = torch.randn(B, S, M).to(dtype).requires_grad_()
    summary, x = (torch.randn(shape).to(dtype).requires_grad_() for shape in ((B, M), (B, 2 * T, D)))
    state = mixer.init_state(B, memory=Memory(vectors, mask, summary))
    y, state = mixer(x[:, :T], state, lengths=lengths)
    z, state = mixer(x[:, T:], state)
    outputs = [y, z, *(state[name] for name in mixer.recurrent.shapes)]
    return [*outputs, *gradients(outputs, [x, vectors, summary, *mixer.parameters()])]


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["whole", "ragged"])
def test_decoder_equals_its_reference(cell, lengths):
    mixer = randomize(AttentionRNN(cell, D, 20, M, "additive"), 0.5)
    with record_paths() as ran:
        found = layer(mixer, torch.float32, lengths)
    assert ran == ["additive:kernel"] * 2
    with reference_only():
        expected = layer(mixer, torch.float64, lengths)
    close(found, expected)


def test_lower_precision():
    """bfloat16 in the products alone: near the float32 result."""
    mixer = randomize(AttentionRNN("gru", D, 20, M, "additive"), 0.5)
    expected = layer(mixer, torch.float32, LENGTHS)
    with torch.autocast("cpu", torch.bfloat16), record_paths() as ran:
        found = layer(mixer, torch.float32, LENGTHS)
    assert "additive:kernel" in ran
    assert max(errors(found, expected)) < 0.1
