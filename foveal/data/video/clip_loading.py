"""The frames of a clip as pixels: each a square of the same size, whatever they are kept in."""

import hashlib
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from foveal.data.files.file_bytes import read_file_bytes
from foveal.data.files.utf8 import AnyPath
from foveal.data.images.image_decoding import (
    DecodedImage,
    Pixels,
    decode_animation,
    image_from_array,
    to_uint8,
    upscale,
)
from foveal.data.images.image_files import load_image
from foveal.data.video.clip_arrays import ClipArray
from foveal.data.video.clip_files import ClipFrames
from foveal.data.video.video_decoding import decode_video, is_video

MIN_FRAMES = 2
"""Frames of a clip: nothing moves in a single one."""


class DecodedClip(NamedTuple):
    """`pixels` of the frames that can be used, `used` their numbers among all `frames` that there are, and
    `skipped_frames` the names of the others with the reasons."""

    pixels: UInt8[np.ndarray, "T H W C"]
    used: list[int]
    frames: int
    skipped_frames: list[tuple[str, str]]
    content: str
    """The sha256 of those of the frames, `DecodedImage.content`."""


def load_clip(frames: ClipFrames, size: int, channels: int, max_length: int) -> DecodedClip | str:
    """The centres of its frames, `size` by `size`; or why there are too few, or too many."""
    found: list[DecodedImage | str] | str
    if isinstance(frames, ClipArray):
        if why := _frame_count_error(len(frames.frames), max_length):
            return why
        found = _decode_array(frames, size, channels)
        names = [f"frame {number + 1}" for number in range(len(found))]
    elif isinstance(frames, list):
        if why := _frame_count_error(len(frames), max_length):
            return why
        found = [load_image(file, size, channels) for file in frames]
        names = [file.name for file in frames]
    else:
        found = _decode_file(frames, size, channels, max_length)
        names = [] if isinstance(found, str) else [f"frame {number + 1}" for number in range(len(found))]
    if isinstance(found, str):
        return found
    used = {number: one for number, one in enumerate(found) if not isinstance(one, str)}
    lost = [(name, one) for name, one in zip(names, found, strict=True) if isinstance(one, str)]
    if len(used) < MIN_FRAMES:
        why = f"; {lost[0][0]}: {lost[0][1]}" if lost else ""
        return f"{_frame_count(len(used))} that can be used, and a clip needs {MIN_FRAMES}{why}"
    pixels = np.stack([_center_crop(one.pixels, size) for one in used.values()])
    content = hashlib.sha256("".join(one.content for one in used.values()).encode())
    return DecodedClip(pixels, [*used], len(found), lost, content.hexdigest())


def _frame_count_error(count: int, max_length: int) -> str:
    """Why a clip of so many frames is left out; empty if it is not."""
    if count < MIN_FRAMES:
        return f"{_frame_count(count)}, and a clip needs {MIN_FRAMES}; give all of its frames"
    if count > max_length:
        return f"{count:,} frames, and data.max_length={max_length}: train with more, or cut the clip"
    return ""


def _frame_count(count: int) -> str:
    return f"{count} frame{'' if count == 1 else 's'}"


def _decode_file(file: AnyPath, size: int, channels: int, max_length: int) -> list[DecodedImage | str] | str:
    """Those of a video or an animation."""
    if is_video(file.name):
        return decode_video(file, size, channels, max_length)
    content = read_file_bytes(file)
    return content if isinstance(content, str) else decode_animation(content, size, channels, max_length)


def _decode_array(stored: ClipArray, size: int, channels: int) -> list[DecodedImage | str]:
    found = (to_uint8(frame, stored.white) for frame in stored.frames)
    return [one if isinstance(one, str) else image_from_array(one, size, channels) for one in found]


def _center_crop(image: Pixels, size: int) -> Pixels:
    image = upscale(image, size)
    top, left = ((side - size) // 2 for side in image.shape[:2])
    return image[top : top + size, left : left + size]
