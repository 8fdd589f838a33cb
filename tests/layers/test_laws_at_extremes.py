"""Extreme but legal inputs, for every row of the table: outputs, states and gradients stay finite."""

import pytest
import torch
from torch import Tensor

from foveal.core.runtime import Precision, autocast
from foveal.laws.module_states import run_module, state_entries
from foveal.laws.trial import Trial
from tests.support.mixer_rows import EVERY, READING, D, make_row_module, memory_of

T = 200
LONG = 100_000
STEP_BY_STEP = {
    **dict.fromkeys(
        ("elman", "elman-relu", "gru-after", "gru-before", "own-cell", "stack-hybrid", "block-highway"), 5_000
    ),
    **{name: 1_000 for name in READING if name.startswith("attentive")},
}
"""Rows that take 50 us to 1 ms a step, and over time do what quicker ones do: so many steps are enough."""

INPUTS = {
    "all equal": torch.ones(2, T, D),
    "all zero": torch.zeros(2, T, D),
    "one position": torch.linspace(-2, 2, 2 * D).view(2, 1, D),
    "huge": 1e4 * torch.linspace(-1, 1, 2 * T * D).view(2, T, D),
    "huge and equal": -1e4 * torch.ones(2, T, D),
    "tiny": 1e-30 * torch.linspace(-1, 1, 2 * T * D).view(2, T, D),
    "denormal": 1e-40 * torch.ones(2, T, D),
}


def finite(
    trial: Trial, x: Tensor, precision: Precision = "float32", lengths: Tensor | None = None
) -> Tensor:
    """The outputs, found to be finite together with the state and all gradients."""
    x = x.clone().requires_grad_()
    with autocast(x.device, precision):
        y, state = run_module(trial.module, x, trial.start(*range(len(x))), lengths)
    outputs = [y, *state_entries(trial.module, state)]
    assert all(part.isfinite().all() for part in outputs)
    assert all(part.isfinite().all() for part in trial.gradients(outputs, x))
    return y


every_row = pytest.mark.parametrize("name", list(EVERY))


def trial_of(name: str) -> Trial:
    return Trial(
        make_row_module(name, torch.float32), D, torch.float32, 0.0, memory=memory_of(name, torch.float32)
    )


@every_row
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", list(INPUTS))
def test_finite(name, kind, precision):
    finite(trial_of(name), INPUTS[kind], precision)


@every_row
@pytest.mark.parametrize("lengths", [[T, 0], [0, 0]], ids=["an empty row", "nothing but empty rows"])
def test_empty_rows(name, lengths):
    x = torch.full((2, T, D), torch.nan)
    x[0, : lengths[0]] = 1
    y = finite(trial_of(name), x, lengths=torch.tensor(lengths))
    assert y[1].eq(0).all()


@pytest.mark.slow
@every_row
def test_very_long(name):
    trial = trial_of(name)
    if not trial.module.bounded:
        pytest.skip("attention without a window takes time with the square of the length")
    finite(trial, torch.randn(1, STEP_BY_STEP.get(name, LONG), D))


@every_row
@pytest.mark.parametrize(("rows", "positions"), [(2, 0), (0, 3)])
def test_nothing_to_read(name, rows, positions):
    trial = trial_of(name)
    for state in (trial.start(*range(rows)), trial.begin(*range(rows))):
        with pytest.raises(
            ValueError, match=f"{rows} rows of {positions} positions: both must be at least 1"
        ):
            run_module(trial.module, torch.zeros(rows, positions, D), state)
