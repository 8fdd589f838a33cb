"""The update of plain SGD is the rate times the gradient; the model is as before."""

import math

import pytest
import torch
from torch import nn

from foveal.config import OptimizerConfig
from foveal.inspection.updates.compute import layer_updates
from foveal.training.optim import Optimizer


def test_plain_sgd_and_the_first_step_of_adam() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)).eval()
    x = torch.randn(16, 4)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.train()
    model(x).square().mean().backward()
    gradients = {
        name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None
    }
    model.load_state_dict(before)
    model.zero_grad()
    model.eval()

    def rows(name: str) -> dict[str, tuple[float, float, float]]:
        optimizer = Optimizer(model, OptimizerConfig(name=name, clip_norm=0.0))
        updates = layer_updates(model, optimizer, lambda: model(x).square().mean(), 0.01)
        return {row.layer: (row.ratio, row.gradient_norm, row.weight_norm) for row in updates}

    for layer, (ratio, gradient, weight) in rows("sgd").items():
        parts = [name for name in gradients if name.startswith(f"{layer}.")]
        assert gradient == pytest.approx(
            math.hypot(*(float(gradients[name].norm()) for name in parts)), rel=1e-4
        )
        assert weight == pytest.approx(math.hypot(*(float(before[name].norm()) for name in parts)), rel=1e-5)
        assert ratio == pytest.approx(0.01 * gradient / weight, rel=1e-3)
    ratio, _, weight = rows("adam")["3"]
    assert ratio == pytest.approx(0.01 * math.sqrt(18) / weight, rel=1e-3)
    assert not model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
