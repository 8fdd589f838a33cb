"""Computed clips: handwritten digits that move over a dark square and bounce off its walls.

The clips are the same on every machine, since only `random()` of Python's generator is used (as in
`data.datasets.synthetic_strings`).
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
from foveal.data.images.pixel_levels import Pixels

FRAME_SIDE = 32
"""Side of the square in pixels."""
DIGIT_SIZES, CLIP_LENGTHS, SPEEDS = (16, 20), (8, 16), (1, 3)
"""Smallest and largest: pixels of a digit's longer side, frames of a clip, pixels per frame."""
CLIP_COUNTS = {"train": 20_000, "valid": 500, "test": 1_000}
WALLS = (("top", "bottom"), ("left", "right"))
MOTION_DIRECTIONS = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1))
INK_THRESHOLD = 32
"""Smallest level of a pixel that belongs to the digit."""


class DigitClip(NamedTuple):
    """The frames of a moving digit, the direction of each move, and the walls that the digit hits."""

    frames: UInt8[np.ndarray, "T H W"]
    directions: list[str]
    """The direction of the digit's move before each frame, such as `up-left`. For the first frame, of its
    first move."""
    walls: list[str]
    """The walls that the digit bounces off, in order."""


def moving_digits(files: NamedContents, log: Log) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the splits. No image of a digit is in two splits."""
    for seed, (split, digits) in enumerate(digit_splits(files).items()):
        count = CLIP_COUNTS[split]
        clips = _random_clips(digits, count, Random(seed))
        yield f"{split}.npz", _clips_to_npz(log_progress(clips, count, f"clips ({split})", log))


def render_clip(digit: UInt8[np.ndarray, "h w"], frames: int, rng: Random) -> DigitClip:
    """Render a clip of `digit`, an image without a margin, that starts anywhere and moves for `frames`
    frames.

    The digit touches a wall for one frame, and reverses. Between two frames, the digit moves at least one
    pixel along each axis of its motion, so that the direction of each frame is visible.
    """
    limits = [FRAME_SIDE - side for side in digit.shape]
    position = [int((limit + 1) * rng.random()) for limit in limits]
    speed = [
        sign * _random_integer(*SPEEDS, rng)
        for sign in MOTION_DIRECTIONS[int(len(MOTION_DIRECTIONS) * rng.random())]
    ]
    positions, directions, walls = [tuple(position)], [], []
    for index in range(frames - 1):
        for axis in (0, 1):
            if speed[axis] and position[axis] == (0 if speed[axis] < 0 else limits[axis]):
                if index:  # a bounce in the first frame is not visible
                    walls.append(WALLS[axis][speed[axis] > 0])
                speed[axis] = -speed[axis]
            position[axis] = min(max(position[axis] + speed[axis], 0), limits[axis])
        positions.append(tuple(position))
        directions.append(_direction_name(speed))
    pixels = np.zeros((frames, FRAME_SIDE, FRAME_SIDE), np.uint8)
    for frame, (top, left) in zip(pixels, positions, strict=True):
        frame[top : top + digit.shape[0], left : left + digit.shape[1]] = digit
    return DigitClip(pixels, [directions[0], *directions], walls)


def describe_clip(digit: int, clip: DigitClip) -> str:
    """Describe a clip in a sentence."""
    walls = [f"off the {wall} wall" for wall in clip.walls]
    text = f"{'an' if digit == 8 else 'a'} {digit} moves {clip.directions[0]}"
    return f"{text} and bounces {' and '.join(walls)}" if walls else text


def _random_clips(digits: Digits, count: int, rng: Random) -> Iterator[tuple[int, DigitClip]]:
    """Yield `count` clips with their digits, in random order. If there are too few digits, they repeat."""
    order = sorted(range(len(digits.labels)), key=lambda _: rng.random())
    for index in range(count):
        row = order[index % len(order)]
        image = _resize_digit(digits.images[row], _random_integer(*DIGIT_SIZES, rng))
        yield int(digits.labels[row]), render_clip(image, _random_integer(*CLIP_LENGTHS, rng), rng)


def _clips_to_npz(clips: Iterator[tuple[int, DigitClip]]) -> bytes:
    """Return the bytes of an .npz file with the arrays. `label` is the first wall that the digit hits, or
    `none`."""
    digit_clips = list(clips)
    max_length, count = CLIP_LENGTHS[1], len(digit_clips)
    frames, labels = (
        np.zeros((count, max_length, FRAME_SIDE, FRAME_SIDE), np.uint8),
        np.full((count, max_length), "", "U12"),
    )
    for index, (digit, clip) in enumerate(digit_clips):
        frames[index, : len(clip.frames)] = clip.frames
        labels[index, : len(clip.frames)] = [f"{digit}-{direction}" for direction in clip.directions]
    content = io.BytesIO()
    np.savez_compressed(
        content,
        clips=frames,
        lengths=np.array([len(clip.frames) for _, clip in digit_clips]),
        labels=labels,
        label=np.array([(*clip.walls, "none")[0] for _, clip in digit_clips]),
        digit=np.array([digit for digit, _ in digit_clips]),
        direction=np.array([clip.directions[0] for _, clip in digit_clips]),
        text=np.array([describe_clip(digit, clip) for digit, clip in digit_clips]),
    )
    return content.getvalue()


def _resize_digit(image: Pixels, side: int) -> UInt8[np.ndarray, "h w"]:
    """Cut the margin of a digit, and resize its longer side to `side` pixels."""
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


def _random_integer(smallest: int, largest: int, rng: Random) -> int:
    return smallest + int((largest - smallest + 1) * rng.random())
