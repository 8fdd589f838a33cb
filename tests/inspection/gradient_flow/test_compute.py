"""Gradients through time where their numbers are known: linear networks, and cells that only remember."""

from typing import Any

import pytest
import torch

from foveal import layers
from foveal.inspection.gradient_flow.compute import (
    jacobian_norms,
    relative_norms,
    spectrum,
    state_gradients,
)
from foveal.layers.mixers.recurrent_cells import ElmanCell
from tests.support.language_runs import one_hot_model

B, T, V, H = 3, 9, 5, 6
NAME = "stack.blocks.0.mixer"


@pytest.fixture(autouse=True)
def in_float64():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def examples():
    return torch.randint(V, (B, T)), torch.randint(V, (B,))


def model_and_cell(mixer: Any) -> Any:
    return one_hot_model(mixer).eval(), mixer.cell


def linear_model():
    """Return a ReLU network whose states are positive, so that h_t = W h_(t-1) + W_x x_t."""
    model, cell = model_and_cell(layers.RNN(V, H, "relu"))
    with torch.no_grad():
        cell.weight_hidden.uniform_(0, 0.5)
        cell.weight_input.uniform_(0.1, 1)
    return model, cell


def loss_gradient(model, tokens, targets):
    """Return g = dL_T/dh_T, for a projection of the last state alone."""
    h = model(tokens)[0][:, -1].detach().requires_grad_()
    loss = torch.nn.functional.cross_entropy(model.project(h), targets, reduction="sum")
    return torch.autograd.grad(loss, h)[0]


def test_a_linear_network_has_the_closed_form():
    """dL_T/dh_t = g W^(T - t)."""
    model, cell = linear_model()
    tokens, targets = examples()
    gradients = state_gradients(model, tokens, targets, [f"{NAME}/h"])[f"{NAME}/h"]
    g, W = loss_gradient(model, tokens, targets), cell.weight_hidden.detach()
    powers = [torch.linalg.matrix_power(W, k) for k in range(T)]
    expected = torch.stack([g @ power for power in powers[::-1]], 1)
    torch.testing.assert_close(gradients, expected, rtol=0, atol=1e-10)
    norms = torch.stack([(g @ power).norm(dim=1) / g.norm(dim=1) for power in powers], 1)
    torch.testing.assert_close(relative_norms(gradients), norms, rtol=1e-10, atol=0)
    states = torch.ones(B, T, H)
    true = torch.stack([torch.linalg.matrix_norm(power, 2) for power in powers])
    torch.testing.assert_close(jacobian_norms(cell, states), true.expand(B, T), rtol=1e-10, atol=0)


@pytest.mark.parametrize("mixer", ["rnn", "lstm", "gru"])
def test_equal_to_autograd_on_a_plain_loop(mixer):
    make: Any = {"rnn": layers.RNN, "lstm": layers.LSTM, "gru": layers.GRU}[mixer]
    recurrent = make(V, H)
    model = one_hot_model(recurrent).eval()
    tokens, targets = examples()
    state, states = recurrent.init_state(B), []
    for p in recurrent.cell.project(model.embedding(tokens)).unbind(1):
        y, state = recurrent.cell.step(p, state)
        states.append(state)
    loss = torch.nn.functional.cross_entropy(model.project(y), targets, reduction="sum")
    for part in recurrent.cell.sizes:
        steps = [each[part] for each in states]
        expected = torch.stack(torch.autograd.grad(loss, steps, retain_graph=True), 1)
        result = state_gradients(model, tokens, targets, [f"{NAME}/{part}"])[f"{NAME}/{part}"]
        torch.testing.assert_close(result, expected, rtol=0, atol=1e-10)
    assert all(weight.grad is None for weight in model.parameters())


def test_the_jacobian_of_an_rnn_is_that_of_autograd():
    cell: Any = layers.RNN(V, H).cell
    p, start = cell.project(torch.randn(1, T, V))[0], torch.randn(H)

    def run(h, first):
        states = []
        for t in range(first, T):
            h = cell.step(p[t][None], {"h": h[None]})[0][0]
            states.append(h)
        return torch.stack(states)

    states = run(start, 0).detach()
    expected = []
    for k in range(T):
        if k == 0:
            expected.append(torch.ones(()))
            continue
        J = torch.autograd.functional.jacobian(lambda h, k=k: run(h, T - k)[-1], states[T - 1 - k])
        expected.append(torch.linalg.matrix_norm(J, 2))
    torch.testing.assert_close(jacobian_norms(cell, states[None])[0], torch.stack(expected))


def test_a_cell_that_only_remembers_has_a_constant_gradient():
    """With f = 1 and i = 0, c_T = c_t."""
    model, cell = model_and_cell(layers.LSTM(V, H))
    with torch.no_grad():
        cell.weight_input.view(4, H, V)[:2] = 0
        cell.weight_hidden.view(4, H, H)[:] = 0
        cell.bias.view(4, H)[0], cell.bias.view(4, H)[1] = -1e4, 1e4
    tokens, targets = examples()
    gradients = state_gradients(model, tokens, targets, [f"{NAME}/c"])[f"{NAME}/c"]
    torch.testing.assert_close(relative_norms(gradients), torch.ones(B, T), rtol=0, atol=1e-12)


def test_spectra():
    cell = ElmanCell(V, 40)
    torch.nn.init.orthogonal_(cell.weight_hidden)
    values = spectrum(cell.weight_hidden)
    torch.testing.assert_close(values.singular_values, torch.ones(40))
    torch.testing.assert_close(values.eigenvalues.abs(), torch.ones(40))
    norms = jacobian_norms(ElmanCell(V, 2), torch.zeros(1, 1, 2))
    assert norms.tolist() == [[1.0]]
    shear = spectrum(torch.tensor([[0.5, 10.0], [0.0, -0.25]]))
    assert shear.radius == pytest.approx(0.5)
    assert shear.norm > 10
