"""A folder for each class, of every kind of file that is read so, and how such a folder is read."""

import io
import os
import wave
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from foveal.config import DataConfig, ImageConfig
from foveal.data.core.rows import SkippedRow
from foveal.data.open import open_path
from foveal.data.pairs.pair import PairFormat
from tests.support.clip_folders import clip_folder
from tests.support.image_folders import SIDE, encode_png, random_images, write_files
from tests.support.pair_formats import AUDIO_LABEL, CLIP_LABEL, IMAGE_LABEL, TEXT_LABEL

CONFIG = DataConfig(image=ImageConfig(size=SIDE), tokenizer="word")
LABELS = ("cat", "dog")
PER_CLASS = 4


class ClassFolder(NamedTuple):
    """A kind of files in a folder for each class."""

    suffix: str
    task: str
    data_format: PairFormat


FOLDERS = {
    "pictures": ClassFolder(".png", "image-classification", IMAGE_LABEL),
    "recordings": ClassFolder(".wav", "audio-classification", AUDIO_LABEL),
    "texts": ClassFolder(".txt", "text-classification", TEXT_LABEL),
    "clips": ClassFolder("", "video-classification", CLIP_LABEL),
}


def recording(number: int) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16_000)
        sound.writeframes(np.random.default_rng(number).integers(-9000, 9000, 3200, np.int16).tobytes())
    return out.getvalue()


def files_by_class(kind: str, inside: str = "") -> dict[str, bytes]:
    """Return files such as `cat/0.png`; with `inside`, such as `cat/INSIDE/0.png`."""
    files: dict[str, bytes] = {}
    for number in range(PER_CLASS * len(LABELS)):
        name = f"{LABELS[number % 2]}/{inside}{number}"
        if kind == "clips":
            files |= clip_folder(name, random_images(3, number))
        elif kind == "pictures":
            files[f"{name}.png"] = encode_png(random_images(1, number)[0])
        elif kind == "recordings":
            files[f"{name}.wav"] = recording(number)
        else:
            files[f"{name}.txt"] = f"the text number {number}".encode()
    return files


def write_by_class(path: Path, kind: str, inside: str = "") -> str:
    return write_files(path, files_by_class(kind, inside))


def read_labels(kind: str, data: str, **settings: Any) -> list[str]:
    """Return the sorted labels of the rows of a folder, of which none may be skipped."""
    skipped: list[SkippedRow] = []
    part = open_path(os.fsdecode(data)).train
    rows = FOLDERS[kind].data_format.read(part, CONFIG.model_copy(update=settings), skipped)
    labels = sorted(row.fields["label"] for row in rows)
    assert not skipped
    return labels


def labels_by_split(data: str) -> dict[str, dict[str, int]]:
    """Return the number of files of each class in each split."""
    parts = open_path(data).splits
    return {
        split: {label: len([*part.listing.below(label).walk()]) for label in part.listing.folders}
        for split, part in parts.items()
    }


ALL_LABELS = [label for label in LABELS for _ in range(PER_CLASS)]
