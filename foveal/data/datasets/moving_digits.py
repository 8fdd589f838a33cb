"""Clips that are computed: handwritten digits that move over a dark square and bounce off its walls.

The same on every machine: of Python's generator only `random()` is used (`data.generated`).
"""

import io
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from foveal.core.log import Say, counted
from foveal.data.datasets.mnist import Digits, Files, digit_parts
from foveal.data.images.image_decoding import Pixels

SIDE = 32
"""Pixels of the square."""
SIZES, FRAMES, SPEEDS = (16, 20), (8, 16), (1, 3)
"""From the least to the most: pixels of a digit's longer side, frames of a clip, pixels a frame."""
COUNTS = {"train": 20_000, "valid": 500, "test": 1_000}
WALLS = (("top", "bottom"), ("left", "right"))
WAYS = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1))
INK = 32
"""Levels from which on a pixel belongs to the digit."""


class Clip(NamedTuple):
    frames: UInt8[np.ndarray, "T H W"]
    ways: list[str]
    """Where the digit has come from in each frame, such as `up-left`; in the first, where it goes."""
    walls: list[str]
    """Those it bounces off, in order."""


def moving_digits(files: Files, say: Say) -> Iterator[tuple[str, bytes]]:
    """The files of the parts. No picture of a digit is in two of them."""
    for seed, (part, digits) in enumerate(digit_parts(files).items()):
        clips = _clips(digits, COUNTS[part], Random(seed))
        yield f"{part}.npz", _packed(counted(clips, COUNTS[part], f"clips ({part})", say))


def filmed(digit: UInt8[np.ndarray, "h w"], frames: int, chance: Random) -> Clip:
    """`digit`, without a margin, begins anywhere and goes on for so many frames.

    It touches a wall for one frame, and turns around. From each frame to the next it goes at least a pixel
    along every axis it moves on, so that each frame's direction can be seen.
    """
    room = [SIDE - side for side in digit.shape]
    place = [int((most + 1) * chance.random()) for most in room]
    speed = [way * _between(*SPEEDS, chance) for way in WAYS[int(len(WAYS) * chance.random())]]
    places, ways, walls = [tuple(place)], [], []
    for number in range(frames - 1):
        for axis in (0, 1):
            if speed[axis] and place[axis] == (0 if speed[axis] < 0 else room[axis]):
                if number:  # that it would have gone further at first, nobody has seen
                    walls.append(WALLS[axis][speed[axis] > 0])
                speed[axis] = -speed[axis]
            place[axis] = min(max(place[axis] + speed[axis], 0), room[axis])
        places.append(tuple(place))
        ways.append(_named(speed))
    film = np.zeros((frames, SIDE, SIDE), np.uint8)
    for frame, (top, left) in zip(film, places, strict=True):
        frame[top : top + digit.shape[0], left : left + digit.shape[1]] = digit
    return Clip(film, [ways[0], *ways], walls)


def told(digit: int, clip: Clip) -> str:
    """In words, what happens."""
    walls = [f"off the {wall} wall" for wall in clip.walls]
    text = f"{'an' if digit == 8 else 'a'} {digit} moves {clip.ways[0]}"
    return f"{text} and bounces {' and '.join(walls)}" if walls else text


def _clips(digits: Digits, count: int, chance: Random) -> Iterator[tuple[int, Clip]]:
    """Each digit in turn, in an order by chance, and all again if they are too few."""
    order = sorted(range(len(digits.labels)), key=lambda _: chance.random())
    for number in range(count):
        row = order[number % len(order)]
        image = _scaled(digits.images[row], _between(*SIZES, chance))
        yield int(digits.labels[row]), filmed(image, _between(*FRAMES, chance), chance)


def _packed(clips: Iterator[tuple[int, Clip]]) -> bytes:
    """As arrays: `label` is the first wall that is hit, or `none`."""
    found = list(clips)
    most, count = FRAMES[1], len(found)
    films, labels = np.zeros((count, most, SIDE, SIDE), np.uint8), np.full((count, most), "", "U12")
    for number, (digit, clip) in enumerate(found):
        films[number, : len(clip.frames)] = clip.frames
        labels[number, : len(clip.frames)] = [f"{digit}-{way}" for way in clip.ways]
    content = io.BytesIO()
    np.savez_compressed(
        content,
        clips=films,
        lengths=np.array([len(clip.frames) for _, clip in found]),
        labels=labels,
        label=np.array([(*clip.walls, "none")[0] for _, clip in found]),
        digit=np.array([digit for digit, _ in found]),
        direction=np.array([clip.ways[0] for _, clip in found]),
        text=np.array([told(digit, clip) for digit, clip in found]),
    )
    return content.getvalue()


def _scaled(image: Pixels, side: int) -> UInt8[np.ndarray, "h w"]:
    """Without its margin, the longer side of so many pixels."""
    from PIL import Image

    ink = np.argwhere(image >= INK)
    (top, left), (bottom, right) = ink.min(0), ink.max(0) + 1
    digit = Image.fromarray(image[top:bottom, left:right])
    scale = side / max(digit.size)
    width, height = (max(1, round(scale * length)) for length in digit.size)
    return np.asarray(digit.resize((width, height), Image.Resampling.BILINEAR))


def _named(speed: list[int]) -> str:
    down, right = (np.sign(speed)).tolist()
    return "-".join(name for name in (("", "down", "up")[down], ("", "right", "left")[right]) if name)


def _between(least: int, most: int, chance: Random) -> int:
    return least + int((most - least + 1) * chance.random())
