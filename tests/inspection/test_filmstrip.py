"""Strips of frames: their order, and what stands below them in which role."""

from typing import Any

import numpy as np

from foveal.inspection.filmstrip.view import Filmstrip, filmstrip_payload
from foveal.inspection.panels import ImageRow, Images

FRAMES = np.arange(3, dtype=np.uint8)[:, None, None, None] * 50 + np.zeros((3, 4, 4, 1), np.uint8)


def rows(*strips: Filmstrip) -> tuple[ImageRow, ...]:
    (images,) = filmstrip_payload("run", strips).panels
    assert isinstance(images, Images)
    return images.rows


def captions(part: Any) -> list[tuple[str, str]]:
    return [(caption.text, caption.role) for caption in part.captions]


def test_frames_stand_in_order_with_their_labels() -> None:
    (row,) = rows(Filmstrip("a.mp4", FRAMES, ["3-up", "3-up", "3-up"], ["3-up", "8-down", "3-up"]))
    assert [tile.pixels.mean() for tile in row.tiles if tile] == [0, 50, 100]
    assert [*map(captions, row.tiles)] == [
        [("3-up", "correct")],
        [("3-up", "incorrect"), ("8-down", "muted")],
        [("3-up", "correct")],
    ]
    assert row.captions == ()


def test_one_text_has_the_whole_row() -> None:
    text = "it moves up and bounces off the"
    unknown, known = rows(
        Filmstrip("a", FRAMES, [text], None), Filmstrip("b", FRAMES[:1], [text], ["it stays"])
    )
    assert captions(unknown) == [(text, "muted")]
    assert captions(known) == [(text, "incorrect"), ("it stays", "muted")]
    assert not any(tile.captions for tile in (*unknown.tiles, *known.tiles) if tile)


def test_facts_and_values_name_the_clips() -> None:
    payload = filmstrip_payload(
        "run", [Filmstrip("a", FRAMES, ["up", "down", "up"], None), Filmstrip("b", FRAMES, ["x"], ["y"])]
    )
    assert payload.facts == (
        ("source", "a"),
        ("output", "up down up"),
        ("source", "b"),
        ("output", "x"),
        ("right", "y"),
    )
    assert payload.values["clips"][0]["right"] is None
