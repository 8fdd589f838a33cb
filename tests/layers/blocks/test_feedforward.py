"""Feed-forward layers: the equations written out, first weights, extreme inputs, what is tapped."""

import math
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor, nn

from foveal import capture
from foveal.core.runtime import autocast
from foveal.core.tap import TAP_SITES
from foveal.layers.blocks.feedforward import MLP, Highway, SwiGLU, make_feedforward
from foveal.layers.blocks.moe import Experts
from foveal.models.decoder import language_model
from foveal.ops.jit.dispatch import record_paths
from foveal.tasks.config import from_tables

ModuleT = TypeVar("ModuleT", bound=nn.Module)

D, H, E, A = 6, 5, 4, 2


def grown(module: ModuleT) -> ModuleT:
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -0.7, 0.7)
    return module.double()


def linear(layer: nn.Linear, x: Tensor) -> Tensor:
    return x @ layer.weight.T + layer.bias


def test_highway():
    """`y = g H(x) + (1 - g) x`; at first g is about sigmoid(-2), so that x is carried."""
    x = torch.randn(3, 7, D, dtype=torch.float64)
    layer = grown(Highway(D))
    g = 1 / (1 + (-linear(layer.gate, x)).exp())
    torch.testing.assert_close(layer(x), g * linear(layer.transform, x).clamp(min=0) + (1 - g) * x)
    fresh = Highway(64)
    assert fresh.gate.bias.eq(-2).all()
    assert fresh.transform.bias.eq(0).all()
    assert abs(float(fresh.transform.weight.std().detach()) / 0.02 - 1) < 0.1
    x = torch.randn(100, 64)
    torch.testing.assert_close(fresh(x), x, rtol=0.2, atol=0.2)


FORMULAS = {
    "gelu": lambda x: x / 2 * (1 + (x / math.sqrt(2)).erf()),
    "gelu-tanh": lambda x: x / 2 * (1 + (math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)).tanh()),
    "relu": lambda x: x * (x > 0),
    "sigmoid": lambda x: 1 / (1 + (-x).exp()),
    "tanh": lambda x: 1 - 2 / (1 + (2 * x).exp()),
    "leaky-relu": lambda x: x * torch.where(x > 0, 1, 0.01),
    "elu": lambda x: torch.where(x > 0, x, x.exp() - 1),
    "silu": lambda x: x / (1 + (-x).exp()),
}


@pytest.mark.parametrize("activation", list(FORMULAS))
def test_activations(activation):
    """Each by its formula, in the MLP and in the experts."""
    x = torch.randn(2, 7, D, dtype=torch.float64)
    mlp = grown(MLP(D, H, activation))
    torch.testing.assert_close(mlp(x), linear(mlp.contract, FORMULAS[activation](linear(mlp.expand, x))))
    layer = grown(Experts(D, H, 1, 1, activation=activation))
    hidden = FORMULAS[activation](x @ layer.weight_expand[0].T)
    torch.testing.assert_close(layer(x, None)[0], hidden @ layer.weight_contract[0].T)


def test_experts_are_a_weighted_sum():
    """Vector by vector; the gates are a softmax over the logits of the chosen alone."""
    layer, x = grown(Experts(D, H, E, A)), torch.randn(2, 3, D, dtype=torch.float64)
    y, _ = layer(x, None)
    for b in range(2):
        for t in range(3):
            logits = layer.router.weight @ x[b, t]
            best = logits.argsort(descending=True)[:A]
            gates = logits[best].exp() / logits[best].exp().sum()
            networks = [
                layer.weight_contract[e] @ FORMULAS["gelu"](layer.weight_expand[e] @ x[b, t]) for e in best
            ]
            torch.testing.assert_close(y[b, t], sum(g * out for g, out in zip(gates, networks, strict=True)))


@pytest.mark.parametrize("active", [1, 2, E])
def test_the_router_learns_from_the_loss(active):
    layer = grown(Experts(D, H, E, active))
    y, _ = layer(torch.randn(2, 3, D, dtype=torch.float64), None)
    (gradient,) = torch.autograd.grad(y.square().sum(), layer.router.weight)
    assert gradient.abs().max() > 1e-3


def test_experts_counted_and_gated():
    """Counts and gates are tapped; padding is in neither, its output is zero, and NaN in it harms nothing."""
    layer, lengths = grown(Experts(D, H, E, A)), torch.tensor([5, 2, 0])
    x = torch.randn(3, 5, D, dtype=torch.float64)
    x[1, 2:] = torch.nan
    with capture(layer) as seen:
        y, aux = layer(x, lengths)
    (counts,), (gates,) = seen["/counts"], seen["/gates"]
    assert {"counts", "gates"} <= TAP_SITES.keys()
    assert counts.shape == (E,)
    assert counts.sum() == A * lengths.sum(), "none dropped, none too many"
    assert torch.equal((gates > 0).sum((0, 1)), counts)
    for b, n in enumerate(lengths):
        torch.testing.assert_close(gates[b, :n].sum(-1), gates.new_ones(n))
        assert gates[b, n:].eq(0).all()
        assert y[b, n:].eq(0).all()
        assert y[b, :n].ne(0).all()
    assert aux["balance"][2] == 0
    gradients = torch.autograd.grad(y.square().sum() + aux["balance"].sum(), list(layer.parameters()))
    assert all(gradient.isfinite().all() for gradient in gradients)


EXTREMES = {
    "all equal": (torch.ones(3, 7, D), None),
    "all zero": (torch.zeros(3, 7, D), None),
    "one vector": (torch.ones(1, 1, D), None),
    "an empty row": (torch.ones(3, 7, D), [7, 0, 1]),
    "nothing at all": (torch.ones(3, 7, D), [0, 0, 0]),
    "no vectors": (torch.ones(3, 0, D), None),
    "no rows": (torch.ones(0, 7, D), None),
    "huge": (1e4 * torch.linspace(-1, 1, 21 * D).view(3, 7, D), None),
    "tiny": (1e-30 * torch.linspace(-1, 1, 21 * D).view(3, 7, D), None),
}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("extreme", list(EXTREMES))
def test_extreme_inputs_stay_finite(extreme, precision):
    x, lengths = EXTREMES[extreme]
    layer, x = grown(Experts(D, H, E, A)).float(), x.clone().requires_grad_()
    with autocast(x.device, precision), record_paths() as ran:
        y, aux = layer(x, None if lengths is None else torch.tensor(lengths))
    assert ran[0] == "moe:sorted"
    assert y.shape == x.shape
    (y.square().mean() + aux["balance"].sum() if y.numel() else y.sum()).backward()
    for value in (y, aux["balance"], x.grad, *(parameter.grad for parameter in layer.parameters())):
        assert value.isfinite().all()


def test_the_router_keeps_its_precision():
    """Under autocast too: rounding must not change who is sent where."""
    layer, x = Experts(64, H, E, A), torch.randn(20, 30, 64)
    with capture(layer, "*/gates") as seen:
        layer(x, None)
        with autocast(x.device, "bfloat16"):
            layer(x, None)
    assert torch.equal(*seen["/gates"])


def test_first_weights_of_experts():
    layer = Experts(32, 48, 8, 2)
    for weight in layer.parameters():
        assert abs(float(weight.std().detach()) / 0.02 - 1) < 0.1
    assert [name for name, _ in layer.named_parameters()] == [
        "weight_expand",
        "weight_contract",
        "router.weight",
    ]


@pytest.mark.parametrize(("count", "active"), [(4, 5), (4, 0)])
def test_fewer_experts_than_active(count, active):
    with pytest.raises(ValueError, match=f"{active} experts can't be active of {count}"):
        Experts(D, H, count, active)


def test_settings_reach_the_layers():
    def layer(**settings: Any) -> Any:
        model = {"width": 8, "layers": 1, **settings}
        return language_model(from_tables({"model": model}).model, 5, 4).stack.blocks[0].feedforward

    assert layer() is None
    assert isinstance(layer(feedforward="swiglu"), SwiGLU)
    assert isinstance(layer(feedforward="highway"), Highway)
    mlp: Any = layer(feedforward="mlp", activation="relu", expansion=3.0)
    assert (mlp.activation, mlp.expand.out_features) == ("relu", 24)
    experts = {"count": 5, "top_k": 3, "balance_coefficient": 0.5}
    found: Any = layer(feedforward="moe", activation="relu", expansion=0.5, experts=experts)
    assert (found.count, found.active, found.coefficient) == (5, 3, 0.5)
    assert found.weight_expand.shape == (5, 4, 8)
    assert found.activate(torch.tensor(-1.0)) == 0


def test_an_active_expert_has_an_mlps_weights():
    """8 D^2 with the usual expansion, biases apart."""
    layer: Any = make_feedforward("moe", 16, 4.0, experts=3)
    assert layer.weight_expand[0].numel() + layer.weight_contract[0].numel() == 8 * 16**2
