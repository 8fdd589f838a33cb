"""What a measurement says about tensors whose statistics are known."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from foveal.inspection.histograms.bins import BINS, GRADIENT_BINS, OUTPUT_BINS, SignedBins
from foveal.inspection.histograms.measure import measure_layers, tensor_statistics
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import LSTMCell


@pytest.mark.parametrize("bins", [OUTPUT_BINS, GRADIENT_BINS])
def test_counts_are_numpys(bins: SignedBins) -> None:
    x = torch.randn(5000) * 10 ** torch.linspace(-18, 5, 5000)
    edges = [-math.inf, *bins.edges(), math.inf]
    expected, _ = np.histogram(x.double().numpy(), edges)
    assert bins.counts(x).tolist() == expected.tolist()
    assert len(edges) == BINS + 1


def test_an_edge_belongs_to_the_bin_above() -> None:
    edges = torch.tensor([-2.0, -1.0, 1.0, 2.0])
    edges = torch.cat([edges, edges.nextafter(torch.tensor(-math.inf))])
    names = [-math.inf, *OUTPUT_BINS.edges()]
    found = [names[place] for place in OUTPUT_BINS.counts(edges).nonzero().flatten().tolist()]
    assert found == [-4.0, -2.0, -1.0, 0.5, 1.0, 2.0]


def test_edges_are_powers_from_the_lowest_on() -> None:
    assert OUTPUT_BINS.edges()[31:34] == [0.0, 2.0**-20, 2.0**-19]
    assert (OUTPUT_BINS.edges()[-1], GRADIENT_BINS.edges()[-1]) == (1024.0, 1024.0)


def test_what_is_not_finite_is_counted_apart() -> None:
    x = torch.tensor([0.0, -0.0, math.nan, math.inf, -math.inf, 3.0, -5.0])
    found = tensor_statistics(x, OUTPUT_BINS)
    assert (found["zeros"], found["nan"], found["infinite"], found["count"]) == (2, 1, 2, 7)
    assert sum(found["counts"]) == 2
    assert found["mean"] == pytest.approx(-0.5)
    assert found["deviation"] == pytest.approx(np.std([0, 0, 3, -5]))
    assert math.isnan(tensor_statistics(x[2:3], OUTPUT_BINS)["mean"])


def test_layers_and_their_gradients_are_autograds() -> None:
    torch.manual_seed(0)
    first, second, third = nn.Linear(6, 5), nn.Linear(5, 4), nn.Linear(4, 2)
    model = nn.Sequential(first, nn.ReLU(), second, nn.Tanh(), third)
    first.bias.data[0] = -100.0
    second.weight.data *= 20
    x = torch.randn(8, 6)
    found = measure_layers(model, lambda: model(x).square().mean())
    assert all(weight.grad is None for weight in model.parameters())

    relu = model[1](model[0](x)).detach().requires_grad_()
    tanh = model[3](model[2](relu))
    tanh.retain_grad()
    loss = model[4](tanh).square().mean()
    loss.backward()
    first, second = found["layers"]
    assert (first["layer"], first["function"], first["shape"]) == ("0", "relu", [5])
    assert first["zeros"] == int((relu == 0).sum())
    assert first["dead"] == pytest.approx(1 / 5)
    assert first["saturated"] is None
    assert second["dead"] is None
    assert second["saturated"] == float((1 - tanh.square() < 0.1).float().mean()) > 0
    assert second["counts"] == OUTPUT_BINS.counts(tanh.detach()).tolist()
    assert relu.grad is not None
    assert tanh.grad is not None
    for layer, gradient in ((first, relu.grad), (second, tanh.grad)):
        assert layer["gradient"]["counts"] == GRADIENT_BINS.counts(gradient).tolist()
        assert layer["gradient"]["deviation"] == pytest.approx(float(gradient.std(correction=0)), rel=1e-5)
    last = model[4]
    assert found["loss"] == pytest.approx(float(loss.detach()))
    norm = math.hypot(float(last.weight.grad.norm()), float(last.bias.grad.norm()))  # type: ignore[union-attr, operator]
    assert found["gradients"]["4"] == pytest.approx(norm, rel=1e-5)
    assert [*found["gradients"]] == ["0", "2", "4"]


def test_frozen_layers_have_no_gradient() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3), nn.ReLU())
    model[0].requires_grad_(False)
    found = measure_layers(model, lambda: model(torch.randn(4, 3)).sum())
    assert found["layers"][0]["gradient"] is None
    assert found["layers"][1]["gradient"] is not None
    assert [*found["gradients"]] == ["2"]


def test_the_gates_of_each_recurrent_layer_are_its_own() -> None:
    """The cells of a stack are never called as modules, so their parents say whose gates these are."""
    model = nn.Sequential(nn.Linear(4, 4), Recurrent(LSTMCell(4, 4)))
    found = measure_layers(model, lambda: model(torch.randn(2, 3, 4))[0].sum())
    names = {(layer["layer"], layer["function"]) for layer in found["layers"]}
    assert names == {("1.cell", "sigmoid"), ("1.cell", "tanh")}
