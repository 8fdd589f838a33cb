"""Activations, seen: nets whose numbers are known, calls of every kind, first weights by the theory."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.inspection.activations.compute import HISTOGRAM_BINS, ActivationStats, collect_activations
from foveal.inspection.activations.panels import activations_payload
from foveal.inspection.figures.compose import draw_payload
from foveal.inspection.panels import Bars, Histograms, Lines
from foveal.layers.blocks.feedforward import MLP
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.initialization import initialize
from foveal.layers.mixers.full_attention import FullAttention
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import ElmanCell, GRUCell, LSTMCell
from foveal.models.image_networks import image_encoder

WIDTH, EXAMPLES = 400, 100


def seen(model: nn.Module, x: Tensor) -> list[ActivationStats]:
    return collect_activations(model, lambda: model(x).sum())


def straight(activation: type[nn.Module], depth: int = 10, width: int = WIDTH) -> nn.Sequential:
    layers = [part for _ in range(depth) for part in (nn.Linear(width, width), activation())]
    layer: Any
    for layer in layers[::2]:
        nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


def test_a_constant_layer():
    layer = nn.Linear(3, 4)
    nn.init.zeros_(layer.weight)
    nn.init.constant_(layer.bias, 0.25)
    (found,) = seen(nn.Sequential(layer, nn.ReLU()), torch.randn(5, 3))
    assert (found.name, found.function, found.shape) == ("0", "relu", (4,))
    assert (found.mean, found.deviation, found.gradient) == (0.25, 0.0, 0.0)
    assert (found.saturated, found.zeros, found.dead) == (None, 0.0, 0.0)
    assert sum(found.histogram.counts) == 20


def test_dead_units_are_zero_for_every_example():
    """Of four units one has a bias of -100, one is alive for one example, two for all."""
    layer = nn.Linear(1, 4)
    layer.weight.data = torch.tensor([[1.0], [1.0], [0.0], [0.0]])
    layer.bias.data = torch.tensor([-100.0, -3.0, 1.0, 2.0])
    x = torch.tensor([[1.0], [2.0], [3.5], [-1.0], [0.0]])
    (found,) = seen(nn.Sequential(layer, nn.ReLU()), x)
    assert found.dead == 1 / 4
    assert found.zeros == pytest.approx((5 + 4) / 20)
    assert found.mean == pytest.approx((0.5 + 5 + 10) / 20)


@pytest.mark.parametrize(("function", "module"), [("tanh", nn.Tanh()), ("sigmoid", nn.Sigmoid())])
def test_saturated_by_the_slope_that_autograd_finds(function, module):
    x = torch.linspace(-6, 6, 1001)[:, None].requires_grad_()
    (slope,) = torch.autograd.grad(module(x).sum(), x)
    (found,) = seen(module, x)
    assert found.function == function
    assert found.saturated == pytest.approx(float((slope < 0.1 * slope.max()).float().mean()), abs=1e-6)
    layer = nn.Linear(4, 8)
    nn.init.constant_(layer.weight, 100.0)
    (found,) = seen(nn.Sequential(layer, module), torch.rand(5, 4) + 0.1)
    assert found.saturated == 1
    assert found.gradient == pytest.approx(0, abs=1e-6)  # of the sum: ones
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    assert seen(nn.Sequential(layer, module), torch.rand(5, 4))[0].saturated == 0


def test_gradients_are_autograds():
    model = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 7), nn.ReLU(inplace=True), nn.Linear(7, 1))
    x = torch.randn(9, 5)
    first = model[1](model[0](x)).detach().requires_grad_()
    second = F.relu(model[2](first))
    found = collect_activations(model, lambda: model(x).square().mean())
    gradients = torch.autograd.grad(model[4](second).square().mean(), (first, second))
    assert [one.name for one in found] == ["0", "2"]
    for one, gradient in zip(found, gradients, strict=True):
        assert one.gradient == pytest.approx(float(gradient.std(correction=0)), rel=1e-5)


def test_histograms_share_their_range_and_keep_everything():
    found = seen(nn.Sequential(nn.Linear(3, 50), nn.Tanh(), nn.Linear(50, 4), nn.ELU()), torch.randn(200, 3))
    assert len({(one.histogram.low, one.histogram.high) for one in found}) == 1
    for one, count in zip(found, (200 * 50, 200 * 4), strict=True):
        assert (len(one.histogram.counts), sum(one.histogram.counts)) == (HISTOGRAM_BINS, count)
    x = torch.linspace(-1, 1, 641)[:, None]
    (one,) = seen(nn.Sigmoid(), x)
    values = 1 / (1 + np.exp(-x.numpy().astype(float)))
    edges = np.linspace(one.histogram.low, one.histogram.high, HISTOGRAM_BINS + 1)
    expected, _ = np.histogram(values.clip(one.histogram.low, one.histogram.high), edges)
    assert np.abs(np.array(one.histogram.counts) - expected).sum() <= 4  # on an edge
    (one,) = seen(nn.ELU(), torch.cat([torch.randn(5000, 1), torch.full((3, 1), 1e3)]))
    assert one.histogram.high < 200
    assert (sum(one.histogram.counts), one.histogram.counts[-1]) == (5003, 3), (
        "what lies beyond is in the last bin"
    )


def test_numbers_that_are_not_finite():
    found = seen(nn.ReLU(), torch.tensor([[1.0, math.inf], [math.nan, 2.0]]))
    assert sum(found[0].histogram.counts) == 2
    assert found[0].to_json()["deviation"] is None
    assert draw_payload(activations_payload("odd", {"odd": found}))


class Functions(nn.Module):
    """Functions behind layers, one behind no layer, and one module that is used behind two."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = (nn.Linear(4, 4) for _ in range(3))
        self.shared = nn.SiLU()

    def forward(self, x: Tensor) -> Tensor:
        x = F.leaky_relu(self.first(torch.sigmoid(x)))
        return self.shared(self.third(self.shared(F.relu6(F.gelu(self.second(x))))))


F_RELU6 = F.relu6


def test_functions_are_named_by_the_layer_they_stand_behind(monkeypatch):
    monkeypatch.setattr(Tensor, "relu6", F_RELU6, raising=False)
    found = [(one.name, one.function) for one in seen(Functions(), torch.randn(3, 4))]
    assert found == [
        ("", "sigmoid"),
        ("first", "leaky-relu"),
        ("second", "gelu"),
        ("second", "relu6"),
        ("second", "silu"),
        ("third", "silu"),
    ]


def test_a_loop_over_time_is_one():
    """The steps of a recurrence: all of them, and units alive at some step are not dead."""

    class Loop(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            h = torch.zeros_like(x[:, 0])
            for t in range(x.shape[1]):
                h = torch.relu(h + x[:, t])
            return h

    x = torch.full((2, 3, 4), -1.0)
    x[0, 1, :3] = 2.0
    (found,) = seen(Loop(), x)
    assert sum(found.histogram.counts) == x.numel()
    assert found.dead == 1 / 4
    assert found.mean == pytest.approx((3 * 2 + 3 * 1) / 24)


@pytest.mark.parametrize(("cell", "gates"), [(LSTMCell, {"sigmoid", "tanh"}), (GRUCell, {"sigmoid", "tanh"})])
def test_gates_that_a_kernel_would_hide(cell, gates):
    (x, model), functions = (torch.randn(3, 5, 16), Recurrent(cell(16, 16))), {}
    for one in collect_activations(model, lambda: model(x)[0].sum()):
        functions[one.function] = sum(one.histogram.counts)
    assert set(functions) == gates
    assert functions["sigmoid"] >= 2 * 3 * 5 * 16


def test_stacks_show_their_blocks():
    model = Block(FullAttention(8, 2), MLP(8, 16, "relu"), "layer", residual=True)
    x = torch.randn(3, 5, 8)
    found = collect_activations(model, lambda: model(x)[0].square().sum())
    assert [(one.name, one.function, one.shape) for one in found] == [
        ("feedforward.expand", "relu", (5, 16)),
        ("", "block", (5, 8)),
    ]
    assert found[1].deviation == pytest.approx(float(model(x)[0].detach().std(correction=0)))
    assert found[1].gradient == pytest.approx(float(2 * model(x)[0].detach().std(correction=0)), rel=1e-5)
    recurrent = Block(Recurrent(ElmanCell(8, 8)))
    assert seen_last(recurrent, x).function == "block"


def seen_last(model: nn.Module, x: Tensor) -> ActivationStats:
    return collect_activations(model, lambda: model(x)[0].sum())[-1]


def test_every_rectifier_of_a_residual_network_is_seen():
    encoder = image_encoder("resnet-20", 3, "published")
    found = collect_activations(encoder, lambda: encoder(torch.randn(2, 3, 16, 16))[0].vectors.sum())
    assert [one.function for one in found] == ["relu"] * 19
    assert found[-1].shape == (64, 4, 4)
    assert [one.name for one in found[:3]] == [
        "blocks.0.norm",
        "blocks.1.body.0.norm",
        "blocks.1.body.1.norm",
    ]


def test_nothing_stays_behind():
    model, x = straight(nn.ReLU, 2, 4), torch.randn(3, 4)
    before = model(x)
    seen(model, x)
    assert torch.equal(model(x), before)
    assert all(not module._forward_hooks and not module._forward_pre_hooks for module in model.modules())
    assert all(weight.grad is None for weight in model.parameters())
    with torch.no_grad():
        assert seen(model, x)[0].gradient is not None
    model.requires_grad_(False)
    assert seen(model, x)[0].gradient is None


FACTORS = {
    "kaiming": 1.0,
    "xavier": math.sqrt(1 / 2),
    "0.01": 0.01 * math.sqrt(WIDTH / 2),
    "0.2": 0.2 * math.sqrt(WIDTH / 2),
}


@pytest.mark.parametrize("rule", FACTORS)
def test_rectified_layers_change_the_size_by_the_theory(rule):
    """He et al. 2015, equation 9: the mean square changes by fan_in s^2 / 2 in each layer; and so does the
    gradient's on its way back."""
    model = straight(nn.ReLU)
    initialize(model, rule, nn.Identity())
    found = seen(model, torch.randn(EXAMPLES, WIDTH))
    squares = [one.mean**2 + one.deviation**2 for one in found]
    for before, after in pairwise(squares):
        assert math.sqrt(after / before) == pytest.approx(FACTORS[rule], rel=0.12)
    over_all = math.sqrt(squares[-1] / squares[0]) ** (1 / 9)
    assert over_all == pytest.approx(FACTORS[rule], rel=0.04)
    # Back: W^T, and the half of the units that are alive; signs at random, so that the sum's gradient is.
    signs = torch.randn(EXAMPLES, WIDTH)
    back = collect_activations(model, lambda: (model(torch.randn(EXAMPLES, WIDTH)) * signs).sum())
    gradients = [one.gradient for one in back if one.gradient is not None]
    assert len(gradients) == len(back)
    ratios = [one / other for one, other in pairwise(gradients)]
    assert np.exp(np.log(ratios).mean()) == pytest.approx(FACTORS[rule], rel=0.05)


def test_kaiming_keeps_the_deviation_within_a_tenth_over_ten_layers():
    """Of one draw: a narrower net wanders more."""
    model = straight(nn.ReLU, width=1500)
    initialize(model, "kaiming", nn.Identity())
    found = seen(model, torch.randn(EXAMPLES, 1500))
    assert all(one.deviation == pytest.approx(found[0].deviation, rel=0.1) for one in found)
    assert found[0].deviation == pytest.approx(math.sqrt(1 - 1 / math.pi), rel=0.02), (
        "sqrt(2) of half a normal"
    )


def test_tanh_saturates_with_large_weights_and_vanishes_with_small_ones():
    shares = {}
    for rule in ("0.01", "0.5", "xavier"):
        model = straight(nn.Tanh)
        initialize(model, rule, nn.Identity())
        shares[rule] = seen(model, torch.randn(EXAMPLES, WIDTH))
    assert all(one.saturated is not None and one.saturated > 0.8 for one in shares["0.5"])
    assert all(one.saturated is not None and one.saturated < 0.05 for one in shares["xavier"][1:])
    assert shares["0.01"][-1].deviation == pytest.approx((0.01 * math.sqrt(WIDTH)) ** 10, rel=0.3)


def test_the_panels_have_a_row_or_a_line_for_each():
    rows = {}
    for depth, rule in ((3, "0.01"), (14, "kaiming")):
        model = straight(nn.ReLU, depth, 30)
        initialize(model, rule, nn.Identity())
        rows[rule] = seen(model, torch.randn(20, 30))
    payload = activations_payload("two depths", rows)
    shallow, slopes, deep, _, sizes, gradients, shares = payload.drawn()
    assert isinstance(slopes, Histograms)
    assert slopes.title == "0.01: gradients"
    drawn_gradient, own = slopes.histograms[1].counts, rows["0.01"][1].gradient_histogram
    assert own is not None
    assert drawn_gradient == own.counts
    assert isinstance(shallow, Histograms)
    assert isinstance(deep, Histograms)
    assert [one.name for one in shallow.histograms] == ["1 relu", "2 relu", "3 relu"]
    assert len(deep.histograms) == 10
    assert deep.histograms[-1].name == "14 relu"
    layer, drawn = rows["0.01"][1], shallow.histograms[1]
    assert drawn.counts == layer.histogram.counts
    assert drawn.cut == 0
    assert drawn.note == f"0: {layer.zeros:.0%}"
    assert isinstance(sizes, Lines)
    assert isinstance(gradients, Lines)
    lines = {series.name: [*series.y] for series in sizes.series}
    assert lines["deviation, kaiming"] == [one.deviation for one in rows["kaiming"]]
    assert lines["mean, 0.01"] == [abs(one.mean) for one in rows["0.01"]]
    assert [*gradients.series[1].y][:-1] == [one.gradient for one in rows["kaiming"][:-1]]
    assert math.isnan(gradients.series[1].y[-1]), "a gradient of 0 has no place on this axis"
    assert isinstance(shares, Bars)
    assert shares.array.values[0].tolist() == [100 * (one.dead or 0) for one in rows["0.01"]] + [0] * 11
    tables = payload.panels[7:]
    assert [table.title for table in tables] == ["0.01", "kaiming"]
