"""The picture of a run's curves says what is drawn."""

import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from foveal.inspection.curves import _y_limits, plot_curves


def test_axes_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    usual = Figure.savefig

    def saved(figure: Figure, *given: Any, **named: Any) -> None:
        drawn.append(figure)
        usual(figure, *given, **named)

    monkeypatch.setattr(Figure, "savefig", saved)
    steps = [{"kind": "step", "step": n, "loss": 2 / n, "rate": 0.1, "tokens": 16 * n} for n in range(1, 9)]
    evaluations = [{"kind": "evaluation", "step": n, "loss": 3 / n} for n in (4, 8)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, [*steps, *evaluations])))
    content = plot_curves(tmp_path / "metrics.jsonl", "run: lenet-5", "images", "image")
    losses, rates = drawn[0].axes
    assert losses.get_title(loc="left") == "run: lenet-5"
    assert losses.get_ylabel() == "loss in nats per image"
    assert (rates.get_ylabel(), rates.get_xlabel()) == ("rate", "step (of 16 images)")
    _, labels = losses.get_legend_handles_labels()
    assert "held out, best 0.375 nats" in labels
    assert not losses.texts  # which could be outside of the axes
    assert all(tick.is_integer() for tick in rates.get_xticks())
    assert content.startswith(b"\x89PNG")


def test_a_high_beginning_does_not_press_the_rest_flat() -> None:
    x, y = [*range(1, 101)], [200.0, *([100.0] * 49), *([95.0] * 50)]
    told = [{"step": 2, "loss": 150.0}, {"step": 50, "loss": 101.0}, {"step": 100, "loss": 97.0}]
    low, high = _y_limits(x, y, told)
    assert 94 < low < 95
    assert 101 < high < 125


def test_what_is_held_out_is_seen_however_far_it_is_from_the_training() -> None:
    x, y = [*range(1, 101)], [3 / n for n in range(1, 101)]
    low, high = _y_limits(x, y, [{"step": 30, "loss": 2.5}, {"step": 90, "loss": 9.0}])
    assert low < 0.03
    assert high > 9


def test_a_loss_that_stays() -> None:
    assert _y_limits([1, 2], [1.0, 1.0], []) == (0.9, 1.1)
