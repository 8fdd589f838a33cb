"""The view `histograms` shows the lines of the log, and nothing else."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from foveal.core.errors import UserError
from foveal.inspection.figures.compose import draw_payload
from foveal.inspection.histograms.bins import GRADIENT_BINS, OUTPUT_BINS
from foveal.inspection.histograms.view import HistogramsOptions, HistogramsView
from foveal.inspection.panels import Heatmap, HeatmapGrid, Lines, Table
from foveal.inspection.payload import Payload

pytestmark = pytest.mark.usefixtures("types_unchecked")


def histogram(bin_: int, count: int, zeros: int) -> dict[str, Any]:
    counts = [0] * 64
    counts[bin_] = count
    sizes = {"mean": 0.5, "deviation": 2.0, "nan": 0, "infinite": 0}
    return {"count": count + zeros, "zeros": zeros, "counts": counts} | sizes


def record(step: int, **changes: Any) -> dict[str, Any]:
    """One rectifier: of 100 outputs, `step` more than 20 are 0, and the others are between 0.5 and 1."""
    layer = {"layer": "0", "function": "relu", "shape": [5]} | histogram(52, 80 - step, 20 + step)
    layer |= {"saturated": None, "dead": step / 100, "gradient": histogram(10, 50, 50)} | changes
    update = {"layer": "0", "weights": 30, "weight_norm": 4.0, "update_norm": 0.02 if step else None}
    second = layer | {"layer": "2", "function": "block"} | histogram(20, 100, 0)
    return {
        "step": step,
        "loss": 1.0,
        "layers": [layer, second],
        "gradients": {"0": 3.0},
        "updates": [update],
    }


def run_with(path: Path, *records: dict[str, Any], tail: str = "") -> Any:
    path.write_text("".join(json.dumps(one) + "\n" for one in records) + tail)
    return SimpleNamespace(run=SimpleNamespace(path="run", statistics=path))


def shown(run: Any, layer: str | None = None) -> Payload:
    assert HistogramsView().fits(run) == ""
    return HistogramsView().compute(run, HistogramsOptions(layer), print, lambda index, total: None)


def test_the_map_has_the_shares_of_each_step(tmp_path: Path) -> None:
    run = run_with(tmp_path / "a", record(0), record(10), record(30), tail='{"step": 40, "la')
    outputs, gradients, *others = shown(run).panels
    assert isinstance(outputs, HeatmapGrid)
    assert isinstance(gradients, HeatmapGrid)
    assert outputs.array.axes[1].labels == ("1 relu", "2 block")
    rows = outputs.array.axes[2].labels
    assert rows[0] == "0.5 to 1"
    assert rows[-1] == f"{OUTPUT_BINS.edges()[19]:.3g} to {OUTPUT_BINS.edges()[20]:.3g}"
    assert outputs.array.values[0, 1, -1].tolist() == [100, 100, 100]
    assert outputs.array.axes[3].labels == ("0", "10", "30")
    assert outputs.array.values[0, 0, 0].tolist() == [80, 70, 50]
    assert outputs.array.values[0, 0, rows.index("0")].tolist() == [20, 30, 50]
    assert np.allclose(outputs.array.values.sum(2), 100)
    names = [f"{low:.3g}" for low in GRADIENT_BINS.edges()]
    assert gradients.array.axes[2].labels[-1] == f"{names[9]} to {names[10]}"
    dead = next(one for one in others if isinstance(one, Lines) and one.y_label == "dead, %")
    assert [*dead.series[0].x] == [0, 10, 30]
    assert [*dead.series[0].y] == [0, 10, 30]
    ratios = next(one for one in others if isinstance(one, Lines) and "update" in one.y_label)
    assert [*ratios.series[0].y][1:] == [0.005, 0.005]
    assert math.isnan(ratios.series[0].y[0])
    assert not any(isinstance(one, Lines) and "saturated" in one.y_label for one in others)
    (table,) = [one for one in others if isinstance(one, Table)]
    assert table.title == "step 30"
    assert table.rows[0][6] == "50.0 %"
    assert draw_payload(shown(run))


def test_the_bins_on_both_sides_of_zero(tmp_path: Path) -> None:
    """Each bin stands beside its own name: a count in bin k is drawn in the row of its edges."""
    edges = [-math.inf, *OUTPUT_BINS.edges(), math.inf]
    for place in (0, 5, 31, 32, 52, 63):
        counts = histogram(place, 7, 0)
        (outputs, *_) = shown(run_with(tmp_path / "a", record(0, **counts)), "1").panels
        assert isinstance(outputs, Heatmap)
        assert outputs.array.axes[0].labels == (f"{edges[place]:.3g} to {edges[place + 1]:.3g}",)
        assert outputs.array.values.tolist() == [[100.0]]


def test_lines_and_table_have_the_numbers_of_outputs_gradients_and_weights(tmp_path: Path) -> None:
    changed = record(10, mean=0.25, deviation=4.0)
    changed["layers"][0]["gradient"]["deviation"] = 0.5
    panels = shown(run_with(tmp_path / "a", record(0), changed)).panels
    lines = {one.y_label: [*one.series[0].y] for one in panels if isinstance(one, Lines)}
    assert lines["deviation of outputs"] == [2.0, 4.0]
    assert lines["deviation of gradients"] == [2.0, 0.5]
    assert lines["|gradient|, weights"] == [3.0, 3.0]
    (table,) = [one for one in panels if isinstance(one, Table)]
    assert table.rows[0][1:6] == ("0", "relu", "0.25", "4", "0.5")


def test_a_layer_by_number_or_name_and_a_wrong_one(tmp_path: Path) -> None:
    run = run_with(tmp_path / "a", record(0))
    assert shown(run, "0").title == shown(run, "1").title
    with pytest.raises(UserError, match="layer 7: expected a number from 1 to 2, or a name"):
        shown(run, "7")


def test_what_can_not_be_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = {"step": 0, "error": "RuntimeError: no kernel", "updates": []}
    with pytest.raises(UserError, match="no layer could be measured: RuntimeError: no kernel"):
        shown(run_with(tmp_path / "a", failed))
    assert shown(run_with(tmp_path / "a", failed, record(10)))
    assert "1 of 2 measurements failed: RuntimeError: no kernel" in capsys.readouterr().out
    for change in ({"counts": [1, 2]}, {"shape": "x"}, {"zeros": None}):
        with pytest.raises(UserError, match="damaged"):
            shown(run_with(tmp_path / "a", record(0, **change)))
    assert "no layer was measured" in HistogramsView().fits(run_with(tmp_path / "a"))
    missing = SimpleNamespace(run=SimpleNamespace(statistics=tmp_path / "none"))
    assert "kept no statistics" in HistogramsView().fits(missing)
    facts = dict(shown(run_with(tmp_path / "a", record(0), record(10, nan=3, infinite=1))).facts)
    assert facts["not finite"] == "step 10, 0 relu: 3 NaN and 1 infinite outputs"
