"""Histograms of activations and of gradients have limits of their own, which all layers share."""

import pytest
import torch
from torch import nn

from foveal.inspection.activations.compute import collect_activations


def test_histograms_of_gradients_reach_as_far_as_the_gradients() -> None:
    """The outputs reach from 1 to 3, and their gradients, the scales, from 0.001 to 0.003."""
    layer, x = nn.Linear(1, 1, bias=False), torch.tensor([[1.0], [2.0], [3.0]])
    nn.init.ones_(layer.weight)
    model = nn.Sequential(layer, nn.ReLU())
    scales = torch.tensor([[0.001], [0.002], [0.003]])
    (measured,) = collect_activations(model, lambda: (scales * model(x)).sum())
    outputs, gradients = measured.histogram, measured.gradient_histogram
    assert gradients is not None
    assert (outputs.low, outputs.high) == (1, 3)
    assert [gradients.low, gradients.high] == pytest.approx([0.001, 0.003])
    assert (gradients.counts[0], gradients.counts[-1], sum(gradients.counts)) == (1, 1, 3)
