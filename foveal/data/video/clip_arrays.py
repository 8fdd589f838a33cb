"""Clips as NumPy arrays in a file (.npz): `clips`, `lengths`, and arrays of targets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.data.core.fields import Record
from foveal.data.files.data_part import DataPart
from foveal.data.files.npz import read_arrays
from foveal.data.images.pixel_levels import white_level

CLIPS_ARRAY, LENGTHS_ARRAY = "clips", "lengths"


class ClipArray(NamedTuple):
    """The `frames` of a clip (T, H, W) or (T, H, W, C), and the pixel value of `white` in the whole file."""

    frames: NDArray[Any]
    white: int


def has_clip_arrays(part: DataPart) -> bool:
    """Return whether the part is a file with arrays of clips."""
    return part.is_file and CLIPS_ARRAY in part.arrays


def read_clip_arrays(path: Path, column: str | None) -> Iterator[Record]:
    """Read each clip: `frames`, a `ClipArray`, and `label`, the value of the array `column`.

    `clips` is (N, T, H, W), or has channels too. If clips differ in length, `lengths` (N,) counts their
    frames without padding. Labels of frames are (N, T), and other targets are (N,).

    Raises: UserError: arrays are missing, damaged, or don't fit together.
    """
    clips, lengths, labels = _read(path, column)
    if clips.ndim not in (4, 5) or not clips.size:
        raise UserError(f"{path}: clips are {clips.shape}; needed: (clips, frames, height, width)")
    if lengths is None:
        lengths = np.full(len(clips), clips.shape[1])
    fits = lengths.shape == clips.shape[:1] and lengths.dtype.kind in "iu"
    if not fits or (lengths < 0).any() or (lengths > clips.shape[1]).any():
        raise UserError(f"{path}: lengths {lengths.dtype} {lengths.shape} don't fit clips {clips.shape}")
    each_frame = column == "labels"
    if labels is not None and labels.shape != clips.shape[: 2 if each_frame else 1]:
        raise UserError(
            f"{path}: {column} is {labels.shape}, and clips {clips.shape}; give one for each clip"
            f"{' and frame' if each_frame else ''}"
        )
    white = white_level(clip[:length] for clip, length in zip(clips, lengths.tolist(), strict=True))
    for index, length in enumerate(lengths.tolist()):
        fields: dict[str, Any] = {"frames": ClipArray(clips[index, :length], white)}
        if labels is not None:
            fields["label"] = labels[index, :length].tolist() if each_frame else labels[index].item()
        yield f"clip {index + 1}", fields


def _read(path: Path, column: str | None) -> tuple[NDArray[Any], NDArray[Any] | None, NDArray[Any] | None]:
    """Return clips, lengths and labels."""
    arrays = read_arrays(path, [CLIPS_ARRAY, *([] if column is None else [column])], [LENGTHS_ARRAY])
    return arrays[CLIPS_ARRAY], arrays.get(LENGTHS_ARRAY), None if column is None else arrays[column]
