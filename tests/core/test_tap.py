"""Taps: nothing is made unless somebody looks; names; what they show is what was computed."""

import pytest
import torch
from torch import nn

from foveal import capture
from foveal.core.errors import UserError
from foveal.core.tap import TAP_SITES, TappedModule
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import LSTMCell
from foveal.layers.mixers.self_attention import SelfAttention
from foveal.ops.jit.dispatch import record_paths

B, T, D = 2, 5, 8


class Layer(TappedModule):
    def __init__(self):
        super().__init__()
        self.made = 0

    def forward(self, x):
        def make():
            self.made += 1
            return x * 2

        self.tap("features", make)
        return x


def stack() -> Stack:
    return Stack([Block(SelfAttention(D, 2), residual=True), Block(Recurrent(LSTMCell(D, D)), residual=True)])


def test_no_work_unless_wanted():
    layer = Layer()
    model = nn.Sequential(layer)
    model(torch.ones(1))
    with capture(model, "*/output"):
        model(torch.ones(1))
    with pytest.raises(UserError, match="nothing was captured: call the model inside"), capture(Layer()):
        model(torch.ones(1))
    assert layer.made == 0
    with capture(model) as seen:
        model(torch.ones(1))
        model(torch.zeros(1))
    assert layer.made == 2
    assert [value.item() for value in seen["0/features"]] == [2.0, 0.0]


def test_closed_by_an_error():
    layer = Layer()
    with pytest.raises(ZeroDivisionError), capture(layer):
        raise ZeroDivisionError
    layer(torch.ones(1))
    assert layer.made == 0


def test_names_and_sites():
    """`<module path>/<site>`, in the order of the computation, from the published list."""
    model = stack()
    with capture(model) as seen:
        model(torch.randn(B, T, D))
    assert [name for name in seen if not name.endswith("/output")] == [
        "blocks.0.mixer/weights",
        "blocks.0/features",
        "blocks.1.mixer/h",
        "blocks.1.mixer/c",
        *(f"blocks.1.mixer/{gate}" for gate in "ifgo"),
        "blocks.1.mixer/hidden",
        "blocks.1/features",
    ]
    assert {name.split("/")[1] for name in seen} <= set(TAP_SITES)
    assert seen["blocks.0.mixer/weights"][0].shape == (B, 2, T, T)
    assert seen["blocks.1.mixer/hidden"][0].shape == (B, T, D)
    assert not any(value.requires_grad for values in seen.values() for value in values)


@pytest.mark.parametrize("window", [0, 3])
@pytest.mark.parametrize("ragged", [False, True])
def test_weights_are_the_softmax_that_was_used(window, ragged):
    """While somebody looks the fused kernel still runs, and the weights times the values are its output."""
    layer = SelfAttention(D, 2, window, rotary=True).double()
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -0.8, 0.8)
    x = torch.randn(B, T, D, dtype=torch.float64)
    state = (
        layer(torch.randn(B, 4, D, dtype=torch.float64), lengths=torch.tensor([4, 2]))[1] if ragged else None
    )
    with capture(layer) as seen, record_paths() as ran:
        y, after = layer(x, state)
    assert "attention:fused" in ran
    (weights,) = seen["/weights"]
    S = weights.shape[-1]
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, 2, T, dtype=torch.float64))
    assert weights.ge(0).all()
    values = after["values"] if not window else None
    if values is not None:
        mixed = weights @ values[:, :S].transpose(1, 2)
        torch.testing.assert_close(layer.output(mixed.transpose(1, 2).flatten(2)), y)
    else:
        assert weights.ne(0).sum(-1).le(window).all()
        assert weights.ne(0).sum(-1)[:, :, -1].eq(window).all()
