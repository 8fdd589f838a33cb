"""Positions: a shift is a rotation, and similarities are closed forms of the distance."""

from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.kill import own_cache
from foveal.core.errors import UserError
from foveal.core.progress import no_progress
from foveal.inspection.panels import Heatmap, HeatmapGrid, Lines
from foveal.inspection.positions.compute import (
    position_vectors,
    rotary_angles,
    similarity,
    similarity_by_distance,
)
from foveal.inspection.positions.view import PositionsOptions, PositionsView
from foveal.layers.position import SinusoidalPosition
from foveal.ops.attention.rotary import apply_rotary
from tests.support.untrained_runs import KINDS

D = 16
FREQUENCIES = 10000.0 ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)


@pytest.fixture(autouse=True)
def here(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEAL_CACHE", str(own_cache(tmp_path_factory.getbasetemp() / "cache")))
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))


@pytest.mark.parametrize("k", [1, 7])
def test_a_shift_is_a_rotation_of_each_pair(k: int) -> None:
    vectors = position_vectors(SinusoidalPosition(D), 40).double().view(40, D // 2, 2)
    turn = torch.stack([(k * FREQUENCIES).cos(), (k * FREQUENCIES).sin()], 1)
    sine, cosine = vectors[:-k, :, 0], vectors[:-k, :, 1]
    turned = torch.stack(
        [sine * turn[:, 0] + cosine * turn[:, 1], cosine * turn[:, 0] - sine * turn[:, 1]], 2
    )
    torch.testing.assert_close(turned, vectors[k:], atol=1e-5, rtol=0)


def test_similarity_depends_on_the_distance_alone() -> None:
    found = similarity_by_distance(similarity(position_vectors(SinusoidalPosition(D), 30)))
    expected = [float((k * FREQUENCIES).cos().mean()) for k in range(30)]
    for values in found:
        np.testing.assert_allclose(values, expected, atol=1e-5)


def test_mean_lowest_and_highest_at_each_distance() -> None:
    cosines = torch.tensor([[1.0, 0.5, 0.25], [0.5, 1.0, 0.75], [0.25, 0.75, 1.0]])
    found = similarity_by_distance(cosines)
    assert found == ([1.0, 0.625, 0.25], [1.0, 0.5, 0.25], [1.0, 0.75, 0.25])


def test_angles_are_those_of_the_layer() -> None:
    ones = torch.ones(1, 12, 1, 8)
    ones[..., 4:] = 0
    turned = apply_rotary(ones, torch.arange(12)[None])[0, :, 0]
    angles = rotary_angles(12, 8)
    torch.testing.assert_close(turned[:, :4].double(), angles.cos(), atol=1e-5, rtol=0)
    torch.testing.assert_close(turned[:, 4:].double(), angles.sin(), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("kind", "panels"),
    [
        ("language-model", [Heatmap, Lines]),
        ("translation", [Heatmap, Lines]),  # encoder and decoder have equal sinusoids
        ("image-classification", [Heatmap, HeatmapGrid]),
    ],
)
def test_every_kind_of_positions(kind: str, panels: list[Any]) -> None:
    run = KINDS[kind]()
    assert PositionsView().fits(run) == ""
    payload = PositionsView().compute(run, PositionsOptions(positions=9), print, no_progress)
    assert [type(panel) for panel in payload.panels] == panels
    assert payload.to_json()
    with pytest.raises(UserError, match="--positions 1: expected 2 to 1,024"):
        PositionsView().compute(run, PositionsOptions(positions=1), print, no_progress)


def test_a_run_without_positions_does_not_fit() -> None:
    assert "no vectors or angles" in PositionsView().fits(KINDS["transduction"]())
