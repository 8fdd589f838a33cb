"""Of many classes those with most mistakes are in the map, each at its place."""

import numpy as np

from foveal.inspection.confusion import view
from foveal.inspection.confusion.view import confusion_payload
from foveal.inspection.panels import Heatmap, Table
from foveal.metrics.labels import confusion_matrix


def heatmap(references: list[str], outputs: list[str]) -> Heatmap:
    payload = confusion_payload("run", "test", confusion_matrix(references, outputs))
    (drawn,) = payload.drawn()
    assert isinstance(drawn, Heatmap)
    return drawn


def test_rows_are_correct_classes_and_columns_are_predictions() -> None:
    """Three of four `a` are predicted as `b`: in the upper right."""
    drawn = heatmap([*"aaaab"], [*"bbbab"])
    down, across = drawn.array.axes
    assert (down.name, across.name) == ("correct class", "predicted class")
    assert down.labels == across.labels == ("a", "b")
    assert drawn.array.values.tolist() == [[0.25, 0.75], [0, 1]]
    assert drawn.texts == (("1", "3"), ("", "1"))
    assert (drawn.low, drawn.high) == (0, 1)


def test_of_many_classes_the_hardest(monkeypatch) -> None:
    monkeypatch.setattr(view, "MAX_CLASSES", 10)
    gold = [f"{number:02}" for number in range(60)]
    drawn = heatmap(gold, [*gold[:50], *gold[51:], gold[50]])
    assert drawn.array.axes[0].labels == drawn.array.axes[1].labels == tuple(gold[50:])
    assert np.array_equal(drawn.array.values, np.eye(10)[[*range(1, 10), 0]])
    assert drawn.title == "10 classes of 60, those with most mistakes"


def test_the_tables_have_every_class_and_the_confused_pairs() -> None:
    payload = confusion_payload("run", "test", confusion_matrix([*"aaaab"], [*"bbbab"]))
    _, classes, pairs = payload.panels
    assert isinstance(classes, Table)
    assert isinstance(pairs, Table)
    assert classes.rows == (
        ("a", "4", "100.0 %", "25.0 %", "40.0 %"),
        ("b", "1", "25.0 %", "100.0 %", "40.0 %"),
    )
    assert pairs.rows == (("a", "b", "3", "75.0 %"),)
    assert payload.values["counts"] == [[1, 3], [0, 1]]
