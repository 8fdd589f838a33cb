"""Principal axes of states whose covariance is known, and paths of every kind of language model."""

import pytest
import torch

from foveal.core.errors import UserError
from foveal.core.progress import no_progress
from foveal.inspection.trajectories.compute import principal_axes
from foveal.inspection.trajectories.view import SHOWN_TOKENS, TrajectoriesOptions, TrajectoriesView
from tests.support.language_runs import language_run

TEXT = "é 😀 שלום\n" * 9


def inspect(run, **options):
    return TrajectoriesView().compute(run, TrajectoriesOptions(**options), print, no_progress)


def test_axes_of_a_known_covariance():
    """States vary by 3 along one direction, by 1 along another, around a mean, and not at all otherwise."""
    basis = torch.linalg.qr(
        torch.randn(5, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    )[0]
    corners = torch.tensor([[3.0, 1.0], [3.0, -1.0], [-3.0, 1.0], [-3.0, -1.0]], dtype=torch.float64)
    states = 7 + corners @ basis[:2]
    axes = principal_axes([states[None, :2], states[None, 2:]])
    assert torch.allclose(axes.mean, torch.full((5,), 7.0, dtype=torch.float64))
    assert torch.allclose(axes.fractions, torch.tensor([0.9, 0.1, 0, 0, 0], dtype=torch.float64))
    assert torch.allclose((axes.directions[:2] @ basis[:2].T).abs(), torch.eye(2, dtype=torch.float64))
    assert torch.allclose(axes.project(states, 2).abs(), corners.abs())
    largest = axes.directions.gather(1, axes.directions.abs().argmax(1, keepdim=True))
    assert (largest > 0).all(), "pictures do not flip"
    whole = axes.project(states, 5) @ axes.directions + axes.mean
    assert torch.allclose(whole, states)


def test_states_that_never_change():
    axes = principal_axes([torch.ones(1, 3, 2)])
    assert axes.fractions.tolist() == [0, 0]


@pytest.mark.parametrize("mixer", ["lstm", "gru", "rnn", "attention", "mamba", "rwkv", "s5", "conv"])
def test_kinds_of_runs(mixer):
    run = language_run(TEXT, f"model.mixers={mixer}", "task.batching=windows")
    assert TrajectoriesView().fits(run) == ""
    plane, variance = inspect(run).panels
    cloud, path, start = plane.series
    assert len(path.x) == min(SHOWN_TOKENS, len(TEXT) // 16 * 16 // 16)
    assert start.x[0] == path.x[0]
    assert path.x[0] in cloud.x
    assert variance.series[0].y[-1] == pytest.approx(100)
    one = inspect(run, text="é").panels[0].series[1]
    assert one.labels == ("é",)
    assert inspect(run, text=" \n").panels[0].series[1].labels == ("␣", "⏎")


def test_a_typed_text_is_read_from_its_start():
    run = language_run(TEXT, "model.mixers=lstm")
    held_out = inspect(run).panels[0].series[1]
    typed = inspect(run, text=TEXT[:5]).panels[0].series[1]
    assert typed.x == pytest.approx(held_out.x[:5], abs=1e-5)
    assert typed.y == pytest.approx(held_out.y[:5], abs=1e-5)


def test_bad_input():
    run = language_run(TEXT)
    with pytest.raises(UserError, match="no such layer; it has"):
        inspect(run, layer="nowhere/h")
    with pytest.raises(UserError):
        inspect(run, text="")
    with pytest.raises(UserError, match="no tokens"):
        inspect(run, data="")
