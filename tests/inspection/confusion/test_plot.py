"""Of many classes those with most mistakes are drawn, each at its place."""

import io
from unittest.mock import patch

import numpy as np
from PIL import Image

from foveal.inspection.confusion import plot
from foveal.inspection.confusion.plot import plot_confusion
from foveal.metrics.labels import confusion_matrix


def blues(content: bytes) -> np.ndarray:
    """Where a share of 1 is, in the darkest blue, without the scale of colors on the right."""
    with Image.open(io.BytesIO(content)) as picture:
        matrix = picture.crop((0, 0, int(0.85 * picture.width), picture.height))
    pixels = np.asarray(matrix.convert("RGB")).astype(int)
    return np.argwhere((abs(pixels - (8, 48, 107)) < 6).all(2))


def test_rows_are_right_and_columns_were_given() -> None:
    """All `a` are given `b`: in the upper right; and the other way in the lower left."""
    given_b = blues(plot_confusion(confusion_matrix([*"aaa"], [*"bbb"]), "run"))
    given_a = blues(plot_confusion(confusion_matrix([*"bbb"], [*"aaa"]), "run"))
    assert given_b[:, 1].min() > given_a[:, 1].max()
    assert given_b[:, 0].max() < given_a[:, 0].min() + 4


def test_of_many_classes_the_hardest() -> None:
    gold = [f"{number:02}" for number in range(60)]
    found = [*gold[:50], *gold[51:], gold[50]]
    with patch.object(plot, "MAX_CLASSES", 10):
        content = plot_confusion(confusion_matrix(gold, found), "run")
    with Image.open(io.BytesIO(content)) as picture:
        assert picture.size[0] < 900, "ten classes, not sixty"
    assert len(blues(content)), "the last ten, all of them mistaken"
