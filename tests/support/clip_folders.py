"""Folders and arrays of small clips."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from foveal.config import DataConfig, ImageConfig
from foveal.data import prepare_examples
from foveal.data.pairs.pair import PairFormat
from tests.support.image_folders import SIDE, encode_png, random_images

CLIP_CONFIG = DataConfig(image=ImageConfig(size=SIDE), tokenizer="word", max_length=12)
Files = dict[str, bytes]


def random_clip(number: int, frames: int | None = None) -> NDArray[np.uint8]:
    """Return a clip of two to eleven frames."""
    return random_images(frames or 2 + number % 10, seed=number)


def clip_folder(name: str, frames: NDArray[np.uint8]) -> Files:
    return {f"{name}/frame{number}.png": encode_png(frame) for number, frame in enumerate(frames, 1)}


def clips_by_class(count: int) -> Files:
    files: Files = {}
    for number in range(count):
        files |= clip_folder(f"{'ab'[number % 2]}/clip{number:02}", random_clip(number))
    return files


def clip_table(column: str, rows: list[tuple[str, str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows([("file_name", column), *rows])
    return out.getvalue().encode()


def prepare_clips(data_format: PairFormat, data: str, **settings: Any) -> Any:
    return prepare_examples.prepare_examples(
        data_format, data, data, None, CLIP_CONFIG.model_copy(update=settings), print
    )


def frames_of(split: Any, row: int) -> NDArray[np.uint8]:
    found: NDArray[np.uint8] = split.examples.frames[split.examples.columns["source"][row]]
    return found


def encode_animation(frames: NDArray[np.uint8], form: str) -> bytes:
    out, pictures = io.BytesIO(), [Image.fromarray(frame) for frame in frames]
    more = {"lossless": True} if form == "WEBP" else {}
    pictures[0].save(out, form, save_all=True, append_images=pictures[1:], duration=100, **more)
    return out.getvalue()


def write_clip_arrays(path: Path, channels: tuple[int, ...] = (), **more: Any) -> str:
    clips = np.random.default_rng(0).integers(0, 256, (8, 5, SIDE, SIDE, *channels), np.uint8)
    numbers = np.arange(8)
    given = {
        "lengths": 2 + numbers % 4,
        "label": np.where(numbers % 2, "a", "b"),
        "labels": np.where(np.arange(5) % 2, "x", "y")[None].repeat(8, 0),
        "text": np.array([f"clip {number}" for number in numbers]),
    }
    np.savez(path, clips=clips, **(given | more))
    return str(path)
