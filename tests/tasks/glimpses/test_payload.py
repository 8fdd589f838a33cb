"""Glimpses: the path runs where the model looked, and what it saw there stands beside it in order."""

from typing import Any

import numpy as np
import pytest

from foveal.inspection.panels import Images, Tile
from foveal.tasks.glimpses.view import GlimpsedImage, composite_glimpse, glimpses_payload

H, W, SIDE = 24, 48, 6
PLACES = np.array([[0.0, 0.0], [-0.5, 0.75]], np.float32)
SHADES = (130, 200)
"""What is seen at each place."""


def glimpsed(label: str | None = None) -> GlimpsedImage:
    seen = np.stack([np.full((1, SIDE, SIDE, 3), shade, np.uint8) for shade in SHADES])
    image = np.zeros((H, W, 3), np.uint8)
    return GlimpsedImage("a.png", image, PLACES, seen, [("cat", 0.6), ("dog", 0.7)], label)


def tiles(image: GlimpsedImage) -> tuple[Tile, ...]:
    images, _ = glimpses_payload("run", [image]).panels
    assert isinstance(images, Images)
    return tuple(images.tiles())


def test_the_path_runs_from_place_to_place() -> None:
    """A place of -1 is the upper edge, which is half a pixel above the middle of the first one."""
    path, *squares = tiles(glimpsed())[0].marks
    middle, end = (H / 2 - 0.5, W / 2 - 0.5), (0.25 * H - 0.5, 0.875 * W - 0.5)
    assert path.numbered
    assert path.points == pytest.approx(np.array([middle, end]))
    for square, (down, across) in zip(squares, (middle, end), strict=True):
        assert square.closed
        low, high = square.points.min(0), square.points.max(0)
        assert low == pytest.approx(np.array([down, across]) - SIDE / 2)
        assert high == pytest.approx(np.array([down, across]) + SIDE / 2)


def test_the_glimpses_stand_beside_the_image_in_order() -> None:
    image, *seen = tiles(glimpsed())
    assert image.pixels.shape == (H, W, 3)
    assert [tile.pixels.mean() for tile in seen] == [*SHADES]


@pytest.mark.parametrize(
    ("label", "roles"),
    [(None, ["muted", "muted"]), ("cat", ["correct", "incorrect"]), ("cow", ["incorrect", "incorrect"])],
)
def test_a_prediction_has_the_role_of_being_correct(label: str | None, roles: list[str]) -> None:
    _, *seen = tiles(glimpsed(label))
    assert [(tile.captions[0].text, tile.captions[0].role) for tile in seen] == [
        ("60 %  cat", roles[0]),
        ("70 %  dog", roles[1]),
    ]


def test_the_table_and_the_values_have_the_same_numbers() -> None:
    payload = glimpses_payload("run", [glimpsed("cat")])
    table: Any = payload.panels[1]
    assert table.rows == (
        ("a.png", "cat", "1", "+0.00", "+0.00", "cat", "60.0 %"),
        ("a.png", "cat", "2", "-0.50", "+0.75", "dog", "70.0 %"),
    )
    last = payload.values["images"][0]["path"][1]
    assert last == {"place": [-0.5, 0.75], "answer": "dog", "probability": 0.7}


def test_narrower_squares_lie_over_the_middle_of_wider_ones() -> None:
    squares = np.arange(8, dtype=np.uint8).reshape(2, 2, 2, 1)
    expected = [[4, 4, 5, 5], [4, 0, 1, 5], [6, 2, 3, 7], [6, 6, 7, 7]]
    assert composite_glimpse(squares)[:, :, 0].tolist() == expected
