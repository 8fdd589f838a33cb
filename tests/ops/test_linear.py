"""The path for a few vectors equals torch's product, and is taken for a few vectors alone."""

import inspect

import pytest
import torch
from torch.nn import functional as F

from foveal.ops.jit.dispatch import record_paths, reference_only
from foveal.ops.linear import MAX_KERNEL_VECTORS, WEIGHTS_PER_TASK, linear


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("rows", [(1,), (2, 3), ()])
@pytest.mark.parametrize("size", [(1, 1), (7, 2), (16, 3), (33, 4), (48, 5), (100, 37)], ids=str)
@torch.no_grad()
def test_equal(size, rows, biased):
    K, M = size
    x, weight, bias = torch.randn(*rows, K), torch.randn(M, K), torch.randn(M) if biased else None
    with record_paths() as ran:
        y = linear(x, weight, bias)
    assert ran == ["linear:few_vectors"]
    torch.testing.assert_close(y, F.linear(x, weight, bias), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_several_tasks_and_what_does_not_lie_in_order():
    x, weight = torch.randn(3, 256).t()[:, :2].t(), torch.randn(256, WEIGHTS_PER_TASK // 64).t()
    torch.set_num_threads(3)
    y = linear(x, weight)
    torch.set_num_threads(1)
    torch.testing.assert_close(y, F.linear(x, weight), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_on_processors_that_torch_serves_well(monkeypatch: pytest.MonkeyPatch):
    """There it is taken for several vectors and a large matrix alone."""
    monkeypatch.setattr("foveal.ops.linear._is_intel", lambda: True)
    large, small = torch.randn(1024, 1024), torch.randn(16, 16)
    for weight, rows, taken in ((large, 4, True), (large, 3, False), (small, 4, False)):
        with record_paths() as ran:
            linear(torch.randn(rows, weight.shape[1]), weight)
        assert (ran == ["linear:few_vectors"]) is taken


def test_taken_for_a_few_without_gradients():
    weight = torch.randn(5, 16)
    with record_paths() as ran:
        linear(torch.randn(MAX_KERNEL_VECTORS, 16), weight)  # gradients
        with torch.no_grad():
            linear(torch.randn(MAX_KERNEL_VECTORS + 1, 16), weight)
            assert not ran
            linear(torch.randn(MAX_KERNEL_VECTORS, 16).double(), weight.double())
            with reference_only():
                linear(torch.randn(MAX_KERNEL_VECTORS, 16), weight)
    assert ran == ["linear:reference"] * 2


@torch.no_grad()
@pytest.mark.parametrize("width", [8, 24, 32])
def test_a_width_that_does_not_fit_is_torchs_error(width):
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        inspect.unwrap(linear)(torch.randn(2, width), torch.randn(5, 16))
