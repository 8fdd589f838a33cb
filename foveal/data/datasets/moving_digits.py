"""Clips that are computed: handwritten digits that move over a dark square and bounce off its walls.

The same on every machine: of Python's generator only `random()` is used (`data.datasets.synthetic_strings`).
"""

import io
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from foveal.core.log import Log, log_progress
from foveal.data.datasets.mnist import Digits, digit_splits
from foveal.data.files.archives import NamedContents
from foveal.data.images.image_decoding import Pixels

FRAME_SIDE = 32
"""Pixels of the square."""
DIGIT_SIZES, CLIP_LENGTHS, SPEEDS = (16, 20), (8, 16), (1, 3)
"""From the least to the most: pixels of a digit's longer side, frames of a clip, pixels a frame."""
CLIP_COUNTS = {"train": 20_000, "valid": 500, "test": 1_000}
WALLS = (("top", "bottom"), ("left", "right"))
MOTION_DIRECTIONS = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1))
INK_THRESHOLD = 32
"""Levels from which on a pixel belongs to the digit."""


class DigitClip(NamedTuple):
    frames: UInt8[np.ndarray, "T H W"]
    directions: list[str]
    """Where the digit has come from in each frame, such as `up-left`; in the first, where it goes."""
    walls: list[str]
    """Those it bounces off, in order."""


def moving_digits(files: NamedContents, log: Log) -> Iterator[tuple[str, bytes]]:
    """The files of the parts. No picture of a digit is in two of them."""
    for seed, (part, digits) in enumerate(digit_splits(files).items()):
        clips = _random_clips(digits, CLIP_COUNTS[part], Random(seed))
        yield f"{part}.npz", _clips_to_npz(log_progress(clips, CLIP_COUNTS[part], f"clips ({part})", log))


def render_clip(digit: UInt8[np.ndarray, "h w"], frames: int, rng: Random) -> DigitClip:
    """`digit`, without a margin, begins anywhere and goes on for so many frames.

    It touches a wall for one frame, and turns around. From each frame to the next it goes at least a pixel
    along every axis it moves on, so that each frame's direction can be seen.
    """
    room = [FRAME_SIDE - side for side in digit.shape]
    place = [int((most + 1) * rng.random()) for most in room]
    speed = [
        way * _random_integer(*SPEEDS, rng)
        for way in MOTION_DIRECTIONS[int(len(MOTION_DIRECTIONS) * rng.random())]
    ]
    places, ways, walls = [tuple(place)], [], []
    for number in range(frames - 1):
        for axis in (0, 1):
            if speed[axis] and place[axis] == (0 if speed[axis] < 0 else room[axis]):
                if number:  # that it would have gone further at first, nobody has seen
                    walls.append(WALLS[axis][speed[axis] > 0])
                speed[axis] = -speed[axis]
            place[axis] = min(max(place[axis] + speed[axis], 0), room[axis])
        places.append(tuple(place))
        ways.append(_direction_name(speed))
    film = np.zeros((frames, FRAME_SIDE, FRAME_SIDE), np.uint8)
    for frame, (top, left) in zip(film, places, strict=True):
        frame[top : top + digit.shape[0], left : left + digit.shape[1]] = digit
    return DigitClip(film, [ways[0], *ways], walls)


def describe_clip(digit: int, clip: DigitClip) -> str:
    """In words, what happens."""
    walls = [f"off the {wall} wall" for wall in clip.walls]
    text = f"{'an' if digit == 8 else 'a'} {digit} moves {clip.directions[0]}"
    return f"{text} and bounces {' and '.join(walls)}" if walls else text


def _random_clips(digits: Digits, count: int, rng: Random) -> Iterator[tuple[int, DigitClip]]:
    """Each digit in turn, in an order by chance, and all again if they are too few."""
    order = sorted(range(len(digits.labels)), key=lambda _: rng.random())
    for number in range(count):
        row = order[number % len(order)]
        image = _resize_digit(digits.images[row], _random_integer(*DIGIT_SIZES, rng))
        yield int(digits.labels[row]), render_clip(image, _random_integer(*CLIP_LENGTHS, rng), rng)


def _clips_to_npz(clips: Iterator[tuple[int, DigitClip]]) -> bytes:
    """As arrays: `label` is the first wall that is hit, or `none`."""
    found = list(clips)
    most, count = CLIP_LENGTHS[1], len(found)
    films, labels = (
        np.zeros((count, most, FRAME_SIDE, FRAME_SIDE), np.uint8),
        np.full((count, most), "", "U12"),
    )
    for number, (digit, clip) in enumerate(found):
        films[number, : len(clip.frames)] = clip.frames
        labels[number, : len(clip.frames)] = [f"{digit}-{way}" for way in clip.directions]
    content = io.BytesIO()
    np.savez_compressed(
        content,
        clips=films,
        lengths=np.array([len(clip.frames) for _, clip in found]),
        labels=labels,
        label=np.array([(*clip.walls, "none")[0] for _, clip in found]),
        digit=np.array([digit for digit, _ in found]),
        direction=np.array([clip.directions[0] for _, clip in found]),
        text=np.array([describe_clip(digit, clip) for digit, clip in found]),
    )
    return content.getvalue()


def _resize_digit(image: Pixels, side: int) -> UInt8[np.ndarray, "h w"]:
    """Without its margin, the longer side of so many pixels."""
    from PIL import Image

    ink = np.argwhere(image >= INK_THRESHOLD)
    (top, left), (bottom, right) = ink.min(0), ink.max(0) + 1
    digit = Image.fromarray(image[top:bottom, left:right])
    scale = side / max(digit.size)
    width, height = (max(1, round(scale * length)) for length in digit.size)
    return np.asarray(digit.resize((width, height), Image.Resampling.BILINEAR))


def _direction_name(speed: list[int]) -> str:
    down, right = (np.sign(speed)).tolist()
    return "-".join(name for name in (("", "down", "up")[down], ("", "right", "left")[right]) if name)


def _random_integer(least: int, most: int, rng: Random) -> int:
    return least + int((most - least + 1) * rng.random())
