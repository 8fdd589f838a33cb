"""Decode the frames of a clip to squares of equal size, from files, videos, animations and arrays."""

import hashlib
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from foveal.data.files.file_bytes import read_file_bytes
from foveal.data.files.utf8 import AnyPath
from foveal.data.images.image_decoding import DecodedImage, decode_animation, image_from_array, upscale
from foveal.data.images.image_files import load_image
from foveal.data.images.pixel_levels import Pixels, to_uint8
from foveal.data.video.clip_arrays import ClipArray
from foveal.data.video.clip_files import ClipFrames
from foveal.data.video.video_decoding import decode_video, is_video

MIN_FRAMES = 2
"""Smallest number of frames of a clip: nothing moves in a single frame."""


class DecodedClip(NamedTuple):
    """A decoded clip.

    `pixels` are the usable frames, `used` their indices, and `frames` the number of all frames.
    `skipped_frames` are the names of the other frames with the reasons.
    """

    pixels: UInt8[np.ndarray, "T H W C"]
    used: list[int]
    frames: int
    skipped_frames: list[tuple[str, str]]
    content: str
    """The sha256 of the frames' hashes, `DecodedImage.content`."""


def load_clip(frames: ClipFrames, size: int, channels: int, max_length: int) -> DecodedClip | str:
    """Decode the center crops of the frames, `size` by `size`, or return the reason why the clip can't be
    used."""
    decoded: list[DecodedImage | str] | str
    if isinstance(frames, ClipArray):
        if error := _frame_count_error(len(frames.frames), max_length):
            return error
        decoded = _decode_array(frames, size, channels)
        names = [f"frame {index + 1}" for index in range(len(decoded))]
    elif isinstance(frames, list):
        if error := _frame_count_error(len(frames), max_length):
            return error
        decoded = [load_image(file, size, channels) for file in frames]
        names = [file.name for file in frames]
    else:
        decoded = _decode_file(frames, size, channels, max_length)
        names = [] if isinstance(decoded, str) else [f"frame {index + 1}" for index in range(len(decoded))]
    if isinstance(decoded, str):
        return decoded
    used = {index: frame for index, frame in enumerate(decoded) if not isinstance(frame, str)}
    skipped = [(name, frame) for name, frame in zip(names, decoded, strict=True) if isinstance(frame, str)]
    if len(used) < MIN_FRAMES:
        reason = f"; {skipped[0][0]}: {skipped[0][1]}" if skipped else ""
        return f"{_frame_count(len(used))} that can be used, and a clip needs {MIN_FRAMES}{reason}"
    pixels = np.stack([_center_crop(frame.pixels, size) for frame in used.values()])
    digest = hashlib.sha256("".join(frame.content for frame in used.values()).encode())
    return DecodedClip(pixels, [*used], len(decoded), skipped, digest.hexdigest())


def _frame_count_error(count: int, max_length: int) -> str:
    """Say why a clip has too few or too many frames. Empty if the number is allowed."""
    if count < MIN_FRAMES:
        return f"{_frame_count(count)}, and a clip needs {MIN_FRAMES}; give all of its frames"
    if count > max_length:
        return f"{count:,} frames, and data.max_length={max_length}: train with more, or cut the clip"
    return ""


def _frame_count(count: int) -> str:
    return f"{count} frame{'' if count == 1 else 's'}"


def _decode_file(file: AnyPath, size: int, channels: int, max_length: int) -> list[DecodedImage | str] | str:
    """Decode the frames of a video or an animation."""
    if is_video(file.name):
        return decode_video(file, size, channels, max_length)
    content = read_file_bytes(file)
    return content if isinstance(content, str) else decode_animation(content, size, channels, max_length)


def _decode_array(stored: ClipArray, size: int, channels: int) -> list[DecodedImage | str]:
    frames = (to_uint8(frame, stored.white) for frame in stored.frames)
    return [frame if isinstance(frame, str) else image_from_array(frame, size, channels) for frame in frames]


def _center_crop(image: Pixels, size: int) -> Pixels:
    image = upscale(image, size)
    top, left = ((side - size) // 2 for side in image.shape[:2])
    return image[top : top + size, left : left + size]
