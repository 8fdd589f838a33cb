"""Convolutions with a history: against torch's, path against path, and what they keep of a ragged batch."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from foveal.models.decoder import language_model
from foveal.ops.causal_conv1d import causal_conv1d, updated_history
from foveal.ops.jit.dispatch import record_paths, reference_only
from foveal.tasks.config import load_config

B, T, D, E = 2, 7, 3, 4


def numbers(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize(("kernel", "dilation"), [(1, 1), (3, 1), (2, 3), (4, 2), (3, 9)])
@pytest.mark.parametrize("biased", [True, False])
def test_both_paths_equal_torch(kernel, dilation, biased):
    x, history = numbers(B, T, D), numbers(B, (kernel - 1) * dilation, D)
    inputs = [x, history, numbers(E, D, kernel)] + [numbers(E)] * biased
    weights = inputs[2:]
    every = torch.cat([history, x], 1).transpose(1, 2)
    expected = F.conv1d(every, weights[0], weights[1] if biased else None, dilation=dilation).transpose(1, 2)
    factor = torch.randn_like(expected)
    gradients = torch.autograd.grad(expected, inputs, factor)
    bias = weights[1] if biased else None
    with record_paths() as ran:
        found = [causal_conv1d(x, history, weights[0], bias, dilation)]
        with reference_only():
            found.append(causal_conv1d(x, history, weights[0], bias, dilation))
    assert ran == ["causal_conv1d:one_product", "causal_conv1d:reference"]
    for y in found:
        torch.testing.assert_close(y, expected, rtol=1e-10, atol=1e-10)
        for a, b in zip(torch.autograd.grad(y, inputs, factor), gradients, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_the_worked_example():
    """K = 2, dilation 2, weights (10, 1): ten times the input before the last, plus the last."""
    x, history = torch.tensor([1.0, 2.0, 3.0]).view(1, 3, 1), torch.tensor([8.0, 9.0]).view(1, 2, 1)
    y = causal_conv1d(x, history, torch.tensor([[[10.0, 1.0]]]), None, dilation=2)
    assert y.flatten().tolist() == [81.0, 92.0, 13.0]


@pytest.mark.parametrize("size", [0, 1, 3, 12])
def test_last_inputs_of_ragged_rows(size):
    x, history = torch.randn(3, T, D), torch.randn(3, size, D)
    lengths = torch.tensor([T, 2, 0])
    kept = updated_history(history, x, lengths)
    for b, n in enumerate(lengths):
        assert torch.equal(kept[b], torch.cat([history[b], x[b, :n]])[n:])
    assert torch.equal(updated_history(history, x), updated_history(history, x, torch.tensor([T, T, T])))
    assert torch.equal(kept[2], history[2])


def test_receptive_field_of_the_preset():
    """1 + the sum of (K-1) dilation over the layers, as its comment says: an output sees 46 characters."""
    model = language_model(load_config("conv", ["model.width=4"]).model, vocabulary=5, context=8).double()
    x = torch.randn(1, 60, 4, dtype=torch.float64, requires_grad=True)
    y, _, _ = model.stack(x)
    (gradient,) = torch.autograd.grad(y[0, -1].sum(), x)
    assert gradient[0].ne(0).any(1).nonzero().flatten().tolist() == list(range(60 - 46, 60))
