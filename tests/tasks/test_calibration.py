"""The temperature: the minimum of the loss, whatever the scale of the logits."""

import math

import pytest
import torch
from torch.nn import functional as F

from foveal.tasks.calibration import MAX_TEMPERATURE, fit_temperature

TEMPERATURES = [0.1, 0.5, 1.0, 3.0, 12.0]


def drawn_labels(logits: torch.Tensor) -> torch.Tensor:
    """Labels that are drawn with the probabilities of the logits."""
    return torch.multinomial(logits.softmax(1), 1, generator=torch.Generator().manual_seed(1))[:, 0]


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_the_temperature_of_scaled_logits_comes_back(temperature: float) -> None:
    """Logits of the true probabilities, times T, as those of a head that is fitted in closed form."""
    logits = 2 * torch.randn(20_000, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = drawn_labels(logits)
    assert fit_temperature(temperature * logits, labels) == pytest.approx(temperature, rel=0.03)


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_no_other_temperature_has_a_lower_loss(temperature: float) -> None:
    logits = torch.randn(300, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = drawn_labels(logits)
    fitted = fit_temperature(temperature * logits, labels)
    losses = [
        float(F.cross_entropy(temperature * logits / (fitted * factor), labels)) for factor in (0.98, 1, 1.02)
    ]
    assert losses[1] == min(losses)


def test_choices_that_a_row_does_not_have_change_nothing() -> None:
    logits = torch.randn(300, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = drawn_labels(logits)
    padded = F.pad(logits, (0, 2), value=-math.inf)
    assert fit_temperature(padded, labels) == pytest.approx(fit_temperature(logits, labels), rel=1e-9)


def test_answers_by_chance_have_the_highest_temperature() -> None:
    logits = torch.tensor([[9.0, 0.0], [9.0, 0.0]], dtype=torch.float64)
    assert fit_temperature(logits, torch.tensor([0, 1])) == pytest.approx(MAX_TEMPERATURE)
