"""The picture of a run's curves says what is drawn."""

import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from foveal.inspection.curves import draw_curves


def test_axes_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    usual = Figure.savefig

    def saved(figure: Figure, *given: Any, **named: Any) -> None:
        drawn.append(figure)
        usual(figure, *given, **named)

    monkeypatch.setattr(Figure, "savefig", saved)
    steps = [{"kind": "step", "step": n, "loss": 2 / n, "rate": 0.1, "tokens": 16 * n} for n in range(1, 9)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, steps)))
    draw_curves(tmp_path / "metrics.jsonl", tmp_path / "curves.png", "run: lenet-5", "images", "image")
    losses, rates = drawn[0].axes
    assert losses.get_title(loc="left") == "run: lenet-5"
    assert losses.get_ylabel() == "loss in nats per image"
    assert (rates.get_ylabel(), rates.get_xlabel()) == ("rate", "step (of 16 images)")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
