"""Digits that move: what is drawn is what the labels say, and the parts share no digit."""

import io
import itertools
import json
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from foveal.data.datasets import moving_digits
from foveal.data.datasets.moving_digits import FRAME_SIDE, DigitClip, describe_clip, render_clip


def clips(count: int = 200) -> list[tuple[tuple[int, int], DigitClip]]:
    """With the sides of what moves, a bright block."""
    chance, found = Random(0), []
    for number in range(count):
        sides = 14 + number % 5, 4 + number % 12
        found.append((sides, render_clip(np.full(sides, 200, np.uint8), 8 + number % 9, chance)))
    return found


def places_of(clip: DigitClip) -> NDArray[np.int64]:
    """Down and across of the first bright pixel of each frame (T, 2)."""
    return np.array([np.argwhere(frame)[0] for frame in clip.frames])


def test_the_block_is_whole_in_every_frame() -> None:
    for (high, wide), clip in clips():
        assert (clip.frames.astype(bool).sum((1, 2)) == high * wide).all()


def test_ways_are_those_that_are_seen() -> None:
    names = [("up", "", "down"), ("left", "", "right")]
    for _, clip in clips():
        moved = np.sign(np.diff(places_of(clip), axis=0))
        seen = ["-".join(filter(None, (names[0][y + 1], names[1][x + 1]))) for y, x in moved.tolist()]
        assert "" not in seen
        assert clip.directions == [seen[0], *seen]
    assert {way for _, clip in clips() for way in clip.directions} == {
        *("up", "down", "left", "right"),
        *("-".join(pair) for pair in itertools.product(("up", "down"), ("left", "right"))),
    }


def test_walls_are_those_where_it_turns() -> None:
    names = {(0, False): "top", (0, True): "bottom", (1, False): "left", (1, True): "right"}
    for sides, clip in clips():
        places = places_of(clip)
        moved, seen = np.diff(places, axis=0), []
        for number in range(1, len(moved)):
            for axis in (0, 1):
                if moved[number, axis] * moved[number - 1, axis] < 0:
                    at_end = bool(moved[number - 1, axis] > 0)
                    assert places[number, axis] == (FRAME_SIDE - sides[axis] if at_end else 0)
                    seen.append(names[axis, at_end])
        assert clip.walls == seen
    assert {wall for _, clip in clips() for wall in clip.walls} == {"top", "bottom", "left", "right"}


def test_texts() -> None:
    frames = np.zeros((2, FRAME_SIDE, FRAME_SIDE), np.uint8)
    assert describe_clip(3, DigitClip(frames, ["up", "up"], [])) == "a 3 moves up"
    found = describe_clip(8, DigitClip(frames, ["up-left", "up-left"], ["left", "top"]))
    assert found == "an 8 moves up-left and bounces off the left wall and off the top wall"


def package(count: int) -> list[tuple[str, bytes]]:
    """So many pictures of each digit d: a stroke 10 + d pixels high, as bright as its number says."""
    files = []
    for digit in range(10):
        levels = np.zeros((count, 28, 28))
        levels[:, 5 : 15 + digit, 12:14] = (0.2 + 0.8 * np.arange(count) / count)[:, None, None]
        files.append((f"{digit}.json", json.dumps({"data": levels.ravel().tolist()}).encode()))
    return files


@pytest.fixture(scope="module")
def parts() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moving_digits, "CLIP_COUNTS", {"train": 300, "valid": 20, "test": 40})
        files = dict(moving_digits.moving_digits(package(40), print))
        assert files == dict(moving_digits.moving_digits(package(40), print))
    return {name: dict(np.load(io.BytesIO(content))) for name, content in files.items()}


def test_no_picture_of_a_digit_is_in_two_parts(parts: dict[str, Any]) -> None:
    levels = {
        name: {
            (str(digit), int(clip.max())) for digit, clip in zip(part["digit"], part["clips"], strict=True)
        }
        for name, part in parts.items()
    }
    assert [*levels] == ["train.npz", "valid.npz", "test.npz"]
    assert len(levels["test.npz"]) == 40  # every tenth of 400, each once
    assert sum(map(len, levels.values())) == len(set().union(*levels.values()))


def test_labels_and_texts_agree(parts: dict[str, Any]) -> None:
    for part in parts.values():
        assert len(part["clips"]) == len(part["lengths"]) == len(part["text"])
        for number, length in enumerate(part["lengths"].tolist()):
            digit, way, text = (str(part[name][number]) for name in ("digit", "direction", "text"))
            labels = part["labels"][number]
            assert labels[0] == f"{digit}-{way}"
            assert all(label.startswith(f"{digit}-") for label in labels[:length])
            assert not any(labels[length:])
            assert part["clips"][number, :length].any((1, 2)).all()
            assert not part["clips"][number, length:].any()
            assert f" {digit} moves {way}" in text
            wall = str(part["label"][number])
            assert f"bounces off the {wall} wall" in text if wall != "none" else "bounces" not in text
