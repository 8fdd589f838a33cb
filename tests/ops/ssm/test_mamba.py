"""What Mamba does by elements: every path equals torch's own operations in float64, with all gradients."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.nn import functional as F

from foveal.layers.mixers.mamba import Mamba
from foveal.ops.jit import launch
from foveal.ops.jit.dispatch import record_paths, reference_only
from foveal.ops.ssm import depthwise_conv1d, mamba_delta, mamba_gate

K = 4
# B, T, D: one channel, fewer steps than taps, whole vectors and not, rows for several tasks.
SIZES = [(1, 2, 1), (2, 2, 40), (1, 300, 16), (3, 33, 100), (5, 128, 384)]
THREADS = [1, 2, 5]


class Case(NamedTuple):
    ours: Callable[..., Tensor]
    torchs: Callable[..., Tensor]
    shapes: Callable[[int, int, int], list[tuple[int, ...]]]
    module: object
    path: str


def convolution(x: Tensor, history: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    every = torch.cat([history, x], 1).transpose(1, 2)
    return F.silu(F.conv1d(every, weight[:, None], bias, groups=x.shape[2]).transpose(1, 2))


def filters(taps: int) -> Callable[[int, int, int], list[tuple[int, ...]]]:
    return lambda B, T, D: [(B, T, D), (B, taps - 1, D), (D, taps), (D,)]


CASES = {
    **{
        f"depthwise-{taps}": Case(
            depthwise_conv1d.depthwise_conv1d_silu,
            convolution,
            filters(taps),
            depthwise_conv1d,
            "depthwise_conv1d",
        )
        for taps in (1, K, 9)
    },
    "mamba_delta": Case(
        mamba_delta.mamba_delta,
        lambda x, bias: torch.log1p(torch.exp(x + bias)),
        lambda B, T, D: [(B, T, D), (D,)],
        mamba_delta,
        "mamba_delta",
    ),
    "mamba_gate": Case(
        mamba_gate.mamba_gate,
        lambda y, u, skip, z: (y + skip * u) * z * torch.sigmoid(z),
        lambda B, T, D: [(B, T, D), (B, T, D), (D,), (B, T, D)],
        mamba_gate,
        "mamba_gate",
    ),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))


def drawn(case: Case, B: int, T: int, D: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in case.shapes(B, T, D)]


def everything(operation: Callable[..., Tensor], inputs: list[Tensor]) -> list[Tensor]:
    """The output, and the gradient of a fixed functional of it to each input."""
    y = operation(*inputs)
    return [y, *torch.autograd.grad((y * torch.arange(y.numel()).view_as(y).cos()).sum(), inputs)]


def close(found: list[Tensor], expected: list[Tensor], tolerance: float = 2e-6) -> None:
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        assert (a - b).norm() <= tolerance * b.norm()


@pytest.fixture(params=THREADS)
def threads(request):
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(1)


@every_case
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_kernel_equals_torch(case, size, threads):
    inputs = drawn(case, *size)
    with record_paths() as ran:
        found = everything(case.ours, inputs)
    assert ran == [f"{case.path}:kernel"]
    exact = [part.detach().double().requires_grad_() for part in inputs]
    close(found, everything(case.torchs, exact))


@every_case
@pytest.mark.parametrize("path", [nullcontext, reference_only])
def test_other_paths_equal_torch(case, path):
    inputs = drawn(case, 2, 5, 3, torch.float64)
    with path(), record_paths() as ran:
        close(everything(case.ours, inputs), everything(case.torchs, inputs), 1e-12)
        assert gradcheck(case.ours, inputs)
    assert ran[0] in (f"{case.path}:reference", "depthwise_conv1d:in_place")


@every_case
@pytest.mark.parametrize("size", [(1, 40, 100), (3, 7, 48)], ids=str)
def test_threads_change_no_bit(case, size):
    inputs = drawn(case, *size)
    found = []
    for threads in THREADS:
        torch.set_num_threads(threads)
        try:
            found.append(everything(case.ours, inputs))
        finally:
            torch.set_num_threads(1)
    for other in found[1:]:
        assert all(map(torch.equal, other, found[0]))


@every_case
def test_parts_of_larger_tensors(case):
    """What is not contiguous, in inputs and in the output's gradient."""
    inputs = drawn(case, 2, 20, 32)
    wide = [torch.cat([part, part], -1)[..., : part.shape[-1]] for part in inputs]
    y = case.ours(*wide)
    factor = torch.randn(20, 2, 32).transpose(0, 1)
    found = [y, *torch.autograd.grad(y, inputs, factor)]
    y = case.ours(*inputs)
    close(found, [y, *torch.autograd.grad(y, inputs, factor.contiguous())])


@every_case
def test_going_back_twice(case):
    """What the first pass needed is there for the second."""
    inputs = drawn(case, 2, 20, 32)
    y = case.ours(*inputs)
    first, second = (torch.autograd.grad(y.square().sum(), inputs, retain_graph=True) for _ in range(2))
    assert all(map(torch.equal, first, second))


@every_case
def test_lower_precision_of_what_products_give(case):
    """A product's bfloat16 result is converted to float32: the output equals that for float32 inputs."""
    inputs = drawn(case, 2, 20, 32)
    position = 3 if case.path == "mamba_gate" else 0
    low = [part.bfloat16() if i == position else part for i, part in enumerate(inputs)]
    with record_paths() as ran:
        found = case.ours(*low)
    assert ran == [f"{case.path}:kernel"]
    assert torch.equal(found, case.ours(*(part.float() for part in low)))


@every_case
def test_large_and_small_numbers(case):
    for size in (1e-6, 100.0, 1e4):
        inputs = [(part.detach() * size).requires_grad_() for part in drawn(case, 2, 9, 32)]
        with reference_only():
            expected = everything(case.ours, inputs)
        close(everything(case.ours, inputs), expected, 1e-5)


def test_steps_keep_their_precision():
    """Near 0, where they are e^x, a step is right to the last digits, not to those of 1 + e^x."""
    x = torch.linspace(-30, 30, 3200).view(1, 100, 32)
    found = mamba_delta.mamba_delta(x, torch.zeros(32)).double()
    assert (found / x.double().exp().log1p() - 1).abs().max() < 3e-6
    odd = torch.tensor([torch.nan, torch.inf, -torch.inf, 1000.0, -1000.0]).expand(1, 2, 5)
    assert str(mamba_delta.mamba_delta(odd, torch.zeros(5))[0, 1].tolist()) == "[nan, inf, 0.0, 1000.0, 0.0]"


@every_case
def test_where_kernels_are_off(case, monkeypatch):
    inputs = drawn(case, 2, 20, 32)
    expected = everything(case.ours, inputs)
    monkeypatch.setenv("FOVEAL_KERNELS", "off")
    launch._address.cache_clear()
    for kernel in (case.module._forward, case.module._backward):
        monkeypatch.setattr(kernel, "_address", -1)
    with record_paths() as ran:
        found = everything(case.ours, inputs)
    launch._address.cache_clear()
    assert ran in ([f"{case.path}:reference"], ["depthwise_conv1d:in_place"])
    close(found, expected)


@pytest.mark.parametrize(("T", "elements"), [(5, "kernel"), (1, "reference")])
def test_paths_of_the_layer(T, elements):
    """For one step torch's few operations are faster than a call of the kernel."""
    with record_paths() as ran:
        Mamba(16)(torch.randn(2, T, 16))
    assert ran == [
        "depthwise_conv1d:kernel",
        f"mamba_delta:{elements}",
        "selective_scan:kernel",
        f"mamba_gate:{elements}",
    ]


def test_one_step_of_the_convolution():
    inputs = drawn(CASES[f"depthwise-{K}"], 3, 1, 40)
    close(everything(depthwise_conv1d.depthwise_conv1d_silu, inputs), everything(convolution, inputs))
