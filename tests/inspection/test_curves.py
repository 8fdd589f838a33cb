"""The curves of a run have names, units, the best evaluation, and limits that show what matters."""

import json
from pathlib import Path
from typing import Any

import pytest

from foveal.inspection.curves import _y_limits, curves_payload
from foveal.inspection.panels import Lines

STEPS = [{"kind": "step", "step": n, "loss": 2 / n, "rate": 0.1, "tokens": 16 * n} for n in range(1, 9)]
EVALUATIONS = [{"kind": "evaluation", "step": n, "loss": 3 / n} for n in (4, 8)]


def panels(folder: Path, *records: dict[str, Any]) -> tuple[Lines, Lines]:
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, records)))
    losses, rates = curves_payload(folder / "metrics.jsonl", "run: lenet-5", "images", "image").drawn()
    assert isinstance(losses, Lines)
    assert isinstance(rates, Lines)
    return losses, rates


def test_axes_and_series_are_named(tmp_path: Path) -> None:
    losses, rates = panels(tmp_path, *STEPS, *EVALUATIONS)
    assert losses.y_label == "loss in nats per image"
    assert (rates.y_label, rates.x_label) == ("rate", "step (of 16 images)")
    each, smoothed, held_out, best = losses.series
    assert [*each.y] == [2 / n for n in range(1, 9)]
    assert smoothed.name == "training, smoothed"
    assert ([*held_out.x], [*held_out.y]) == ([4, 8], [0.75, 0.375])
    assert ([*best.x], [*best.y], best.name) == ([8], [0.375], "best 0.375 nats")
    assert [*rates.series[0].y] == [0.1] * 8


@pytest.mark.parametrize("records", [(), STEPS[:1], EVALUATIONS[:1], [STEPS[0] | {"loss": None}]])
def test_few_records_are_drawn_too(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    panels(tmp_path, *records)


def test_a_high_beginning_does_not_press_the_rest_flat() -> None:
    x, y = [*range(1, 101)], [200.0, *([100.0] * 49), *([95.0] * 50)]
    told = [{"step": 2, "loss": 150.0}, {"step": 50, "loss": 101.0}, {"step": 100, "loss": 97.0}]
    low, high = _y_limits(x, y, told) or (0, 0)
    assert 94 < low < 95
    assert 101 < high < 125


def test_what_is_held_out_is_seen_however_far_it_is_from_the_training() -> None:
    x, y = [*range(1, 101)], [3 / n for n in range(1, 101)]
    low, high = _y_limits(x, y, [{"step": 30, "loss": 2.5}, {"step": 90, "loss": 9.0}]) or (0, 0)
    assert low < 0.03
    assert high > 9


def test_a_loss_that_stays() -> None:
    assert _y_limits([1, 2], [1.0, 1.0], []) == (0.9, 1.1)
