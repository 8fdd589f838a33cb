"""Histograms of activations and of gradients have limits of their own, which all layers share."""

import torch
from torch import nn

from foveal.inspection.activations.compute import collect_activations


def test_histograms_of_gradients_reach_as_far_as_the_gradients() -> None:
    """The outputs reach from 1 to 3, and their gradients, the scales, from 0.001 to 0.003."""
    model, x = nn.Sequential(nn.Linear(1, 1, bias=False), nn.ReLU()), torch.tensor([[1.0], [2.0], [3.0]])
    nn.init.ones_(model[0].weight)
    scales = torch.tensor([[0.001], [0.002], [0.003]])
    (layer,) = collect_activations(model, lambda: (scales * model(x)).sum())
    assert layer.gradient_histogram is not None
    counts = layer.gradient_histogram.counts
    assert (layer.histogram.low, layer.histogram.high) == (1, 3)
    assert (counts[0], counts[-1], sum(counts)) == (1, 1, 3)
    assert (layer.gradient_histogram.low, layer.gradient_histogram.high) == (scales.min(), scales.max())
