"""The surest mistakes, against a search over the probabilities of all rows."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from foveal.api.view import compute_view
from foveal.core.progress import no_progress
from foveal.inspection.most_wrong.compute import Predictions, wrong_rows
from foveal.inspection.most_wrong.view import MostWrongOptions
from foveal.inspection.panels import Images, Table
from foveal.inspection.registry import VIEWS
from tests.support.image_session import LABELS, image_session


def test_as_a_search_over_all_rows() -> None:
    draw = np.random.default_rng(0)
    probabilities = draw.dirichlet(np.ones(3), 200).round(1)  # rounded, so that many are equal
    labels = draw.integers(0, 3, 200)
    likeliest = probabilities.argmax(1)
    mistakes = [row for row in range(200) if likeliest[row] != labels[row]]
    expected = sorted(mistakes, key=lambda row: (-probabilities[row].max(), row))
    predictions = [
        Predictions([str(i)], [float(p[i])]) for i, p in zip(likeliest, probabilities, strict=True)
    ]
    rows = wrong_rows([[str(label)] for label in labels], predictions)
    assert [one.row for one in rows] == expected
    assert all(
        (one.reference, one.prediction) == (str(labels[one.row]), str(likeliest[one.row])) for one in rows
    )
    assert all(one.probability == probabilities[one.row].max() for one in rows)


def test_one_place_of_a_row_is_shown() -> None:
    rows = wrong_rows(
        [["a", "b", "a"], ["b"], []],
        [Predictions(["b", "a", "a"], [0.6, 0.8, 0.9]), Predictions(["b"], [1.0]), Predictions([], [])],
    )
    assert [(one.row, one.place, one.reference, one.prediction) for one in rows] == [(0, 1, "b", "a")]


@pytest.mark.parametrize("network", ["linear", "resnet-20"])
def test_the_pictures_are_those_of_the_rows(network: str) -> None:
    run = image_session(f"model.encoder.network={network}")
    with torch.inference_mode():
        batch = run.task.example_batches(run.split.examples).batch(0, 0)
        shares = run.model(batch.columns["source"]).softmax(1)
    labels = [LABELS[i] for i in shares.argmax(1).tolist()]
    mistakes = [row for row, label in enumerate(labels) if label != run.split.references[row]]
    expected = sorted(mistakes, key=lambda row: -float(shares[row].max()))[:5]
    payload = compute_view(VIEWS["most-wrong"], run, MostWrongOptions(count=5))
    images, table = payload.panels
    assert isinstance(images, Images)
    assert isinstance(table, Table)
    for row, tile, line in zip(expected, images.tiles(), table.rows, strict=True):
        assert np.array_equal(tile.pixels, run.split.examples[row])
        share = f"{100 * float(shares[row].max()):.1f} %"
        assert line == (str(row), labels[row], share, run.split.references[row], f"{row}.png")
    assert dict(payload.facts)["wrong"].startswith(f"{len(mistakes)} of 20 rows")


def test_none_is_wrong() -> None:
    run = image_session("model.encoder.network=linear", images=4)
    labels = [label for (label,) in run.task.predicted_labels(run.split.examples, no_progress)]
    run = replace(run, split=replace(run.split, references=labels))
    payload = compute_view(VIEWS["most-wrong"], run, MostWrongOptions())
    assert [type(panel) for panel in payload.panels] == [Table]
    assert dict(payload.facts)["wrong"].startswith("0 of 4 rows")
