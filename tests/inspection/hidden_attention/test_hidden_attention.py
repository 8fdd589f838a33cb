"""A scan is a matrix: what it gives equals the recurrence, and the model's own outputs."""

from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.kill import own_cache
from foveal.core.errors import UserError
from foveal.core.progress import no_progress
from foveal.inspection.hidden_attention.compute import scan_matrices
from foveal.inspection.hidden_attention.view import HiddenAttentionOptions, HiddenAttentionView
from foveal.inspection.panels import Heatmap, HeatmapGrid
from foveal.ops.ssm.selective_scan import selective_scan_reference
from tests.support.untrained_runs import KINDS, UntrainedRun

T, E, N = 9, 3, 4


@pytest.fixture(autouse=True)
def here(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEAL_CACHE", str(own_cache(tmp_path_factory.getbasetemp() / "cache")))
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> UntrainedRun:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOVEAL_CACHE", str(own_cache(tmp_path_factory.getbasetemp() / "cache")))
        patch.chdir(tmp_path_factory.mktemp("hybrid"))
        return KINDS["hybrid"]()


def test_the_matrix_gives_what_the_recurrence_gives() -> None:
    u, delta = torch.randn(1, T, E), torch.rand(1, T, E)
    A, B, C = -torch.rand(E, N), torch.randn(1, T, N), torch.randn(1, T, N)
    expected, _ = selective_scan_reference(u, delta, A, B, C, torch.zeros(1, E, N))
    matrices = scan_matrices(delta[0], A, B[0], C[0])
    torch.testing.assert_close(torch.einsum("ets,se->te", matrices, u[0]), expected[0], atol=1e-5, rtol=1e-5)
    assert bool((matrices.triu(1) == 0).all())


def test_without_decay_every_input_counts_alike() -> None:
    delta, one = torch.full((T, 1), 0.5), torch.ones(T, 1)
    matrix = scan_matrices(delta, torch.zeros(1, 1), 3 * one, one)[0]
    torch.testing.assert_close(matrix, torch.full((T, T), 1.5).tril())


def test_a_hybrid_shows_scans_beside_attention(hybrid: UntrainedRun) -> None:
    assert HiddenAttentionView().fits(hybrid) == ""
    payload = HiddenAttentionView().compute(hybrid, HiddenAttentionOptions(unit=3), print, no_progress)
    shown, scans, attention = payload.panels
    assert isinstance(shown, Heatmap)
    assert isinstance(scans, HeatmapGrid)
    assert isinstance(attention, HeatmapGrid)
    assert payload.values["deviation"] < 1e-4
    assert np.isnan(shown.array.values[np.triu_indices(16, 1)]).all()
    assert shown.diverging
    assert scans.diverging
    assert payload.to_json()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"layer": 4}, "--layer 4: there are 1 layers with a scan"), ({"unit": 999}, "--unit 999")],
)
def test_no_such_channel(hybrid: UntrainedRun, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        HiddenAttentionView().compute(hybrid, HiddenAttentionOptions(**options), print, no_progress)


def test_a_run_without_scans_does_not_fit() -> None:
    assert "no selective scan" in HiddenAttentionView().fits(KINDS["language-model"]())
