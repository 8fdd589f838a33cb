"""Rollout: products that are known, rows that sum to 1, and every kind of run with self-attention."""

import numpy as np
import pytest
import torch

from benchmarks.kill import own_cache
from foveal.core.progress import no_progress
from foveal.inspection.chosen_input import InputOptions
from foveal.inspection.panels import ColoredText, Heatmap, Images
from foveal.inspection.rollout.compute import roll_out
from foveal.inspection.rollout.view import RolloutView
from tests.support.untrained_runs import KINDS


@pytest.fixture(autouse=True)
def here(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEAL_CACHE", str(own_cache(tmp_path_factory.getbasetemp() / "cache")))
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))


def test_two_layers_that_shift_are_known() -> None:
    """Each layer reads the position before: with a residual, half stays at each layer."""
    shift = torch.eye(4).roll(1, 0)
    shift[0] = torch.tensor([1.0, 0, 0, 0])
    weights = shift[None].expand(2, 4, 4)
    rows = roll_out([(weights, True), (weights, True)])
    expected = torch.tensor([[1, 0, 0, 0], [0.75, 0.25, 0, 0], [0.25, 0.5, 0.25, 0], [0, 0.25, 0.5, 0.25]])
    torch.testing.assert_close(rows, expected)
    torch.testing.assert_close(roll_out([(weights, False), (weights, False)]), (shift @ shift))


def test_the_order_of_layers_and_empty_rows() -> None:
    first, second = torch.rand(2, 3, 5, 5).softmax(3)
    rows = roll_out([(first, False), (second, False)])
    torch.testing.assert_close(rows, (second.double().mean(0) @ first.double().mean(0)).float())
    first[:, 2] = 0
    rows = roll_out([(first, False)])
    assert rows[2].tolist() == [0, 0, 1, 0, 0]


@pytest.mark.parametrize(
    ("kind", "panel"),
    [("language-model", ColoredText), ("translation", ColoredText), ("image-classification", Images)],
)
def test_rows_sum_to_1(kind: str, panel: type) -> None:
    run = KINDS[kind]()
    assert RolloutView().fits(run) == ""
    first, heatmap = RolloutView().compute(run, InputOptions(), print, no_progress).panels
    assert isinstance(first, panel)
    assert isinstance(heatmap, Heatmap)
    np.testing.assert_allclose(np.nansum(heatmap.array.values, 1), 1, atol=1e-5)


def test_what_has_no_self_attention_does_not_fit() -> None:
    assert RolloutView().fits(KINDS["transduction"]()) == "the model has no self-attention of Foveal"
