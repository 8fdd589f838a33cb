"""The frames of a clip as pixels: each a square of the same size, whatever they are kept in."""

import hashlib
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from foveal.data.files.utf8 import File
from foveal.data.images.image_decoding import Picture, Pixels, eight_bits, enlarged, from_array, read_frames
from foveal.data.images.image_files import content_of, picture_of
from foveal.data.video.clip_arrays import Stored
from foveal.data.video.clip_files import Frames
from foveal.data.video.video_decoding import is_video, read_video

FEWEST = 2
"""Frames of a clip: nothing moves in a single one."""


class Clip(NamedTuple):
    """`pixels` of the frames that can be used, `kept` their numbers among all `frames` that there are, and
    `lost` the names of the others with the reasons."""

    pixels: UInt8[np.ndarray, "T H W C"]
    kept: list[int]
    frames: int
    lost: list[tuple[str, str]]
    content: str
    """The sha256 of those of the frames, `Picture.content`."""


def read_clip(frames: Frames, size: int, channels: int, longest: int) -> Clip | str:
    """The centres of its frames, `size` by `size`; or why there are too few, or too many."""
    found: list[Picture | str] | str
    if isinstance(frames, Stored):
        if why := _wrong(len(frames.frames), longest):
            return why
        found = _of_array(frames, size, channels)
        names = [f"frame {number + 1}" for number in range(len(found))]
    elif isinstance(frames, list):
        if why := _wrong(len(frames), longest):
            return why
        found = [picture_of(file, size, channels) for file in frames]
        names = [file.name for file in frames]
    else:
        found = _of_file(frames, size, channels, longest)
        names = [] if isinstance(found, str) else [f"frame {number + 1}" for number in range(len(found))]
    if isinstance(found, str):
        return found
    used = {number: one for number, one in enumerate(found) if not isinstance(one, str)}
    lost = [(name, one) for name, one in zip(names, found, strict=True) if isinstance(one, str)]
    if len(used) < FEWEST:
        why = f"; {lost[0][0]}: {lost[0][1]}" if lost else ""
        return f"{_counted(len(used))} that can be used, and a clip needs {FEWEST}{why}"
    pixels = np.stack([_centre(one.pixels, size) for one in used.values()])
    content = hashlib.sha256("".join(one.content for one in used.values()).encode())
    return Clip(pixels, [*used], len(found), lost, content.hexdigest())


def _wrong(count: int, longest: int) -> str:
    """Why a clip of so many frames is left out; empty if it is not."""
    if count < FEWEST:
        return f"{_counted(count)}, and a clip needs {FEWEST}; give all of its frames"
    if count > longest:
        return f"{count:,} frames, and data.longest={longest}: train with more, or cut the clip"
    return ""


def _counted(count: int) -> str:
    return f"{count} frame{'' if count == 1 else 's'}"


def _of_file(file: File, size: int, channels: int, longest: int) -> list[Picture | str] | str:
    """Those of a video or an animation."""
    if is_video(file.name):
        return read_video(file, size, channels, longest)
    content = content_of(file)
    return content if isinstance(content, str) else read_frames(content, size, channels, longest)


def _of_array(stored: Stored, size: int, channels: int) -> list[Picture | str]:
    found = (eight_bits(frame, stored.white) for frame in stored.frames)
    return [one if isinstance(one, str) else from_array(one, size, channels) for one in found]


def _centre(picture: Pixels, size: int) -> Pixels:
    picture = enlarged(picture, size)
    top, left = ((side - size) // 2 for side in picture.shape[:2])
    return picture[top : top + size, left : left + size]
