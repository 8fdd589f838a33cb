"""Small grey pictures in ten classes: handwritten digits, and clothes made like them, as parts in IDX."""

import gzip
import json
import struct
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveal.data.files.archives import NamedContents

DIGIT_SIDE = 28
HELD_OUT_EVERY = {"test": 10, "valid": 20}
"""Of each digit the last tenth is the test, and of what is left the last twentieth for validation."""


class Digits(NamedTuple):
    """`images` (N, 28, 28), 0 is the background and 255 the ink; and `labels` (N,), 0 to 9."""

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]


def digit_splits(files: NamedContents) -> dict[str, Digits]:
    """By part the digits of the package `mnist`: `D.json` holds those of the digit D under `data`, one after
    the other, levels of 0 to 1."""
    found: dict[str, list[Digits]] = {"train": [], "valid": [], "test": []}
    for name, content in sorted(files):
        levels = np.array(json.loads(content)["data"])
        images = np.rint(255 * levels).astype(np.uint8).reshape(-1, DIGIT_SIDE, DIGIT_SIDE)
        for part, count in HELD_OUT_EVERY.items():
            held, images = _split_off_last(images, count)
            found[part].append(_with_label(held, int(PurePosixPath(name).stem)))
        found["train"].append(_with_label(images, int(PurePosixPath(name).stem)))
    return {part: Digits(*map(np.concatenate, zip(*digits, strict=True))) for part, digits in found.items()}


def _split_off_last(images: NDArray[Any], share: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The last one of `share`, and what is before it."""
    kept = len(images) - len(images) // share
    return images[kept:], images[:kept]


def _with_label(images: NDArray[np.uint8], digit: int) -> Digits:
    return Digits(images, np.full(len(images), digit, np.uint8))


def mnist_files(files: NamedContents) -> Iterator[tuple[str, bytes]]:
    """The parts of `digit_splits` as files."""
    for part, digits in digit_splits(files).items():
        yield from _split_files(part, *digits)


def fashion_mnist_files(files: NamedContents) -> Iterator[tuple[str, bytes]]:
    """Fashion-MNIST's files: of those to train on the last twentieth is for validation."""
    for name, content in files:
        if not name.startswith("train"):
            yield name, content
            continue
        values = np.frombuffer(gzip.decompress(content), np.uint8)
        head = 4 + 4 * int(values[3])
        shape = struct.unpack(f">{values[3]}I", values[4:head].tobytes())
        held, kept = _split_off_last(values[head:].reshape(shape), HELD_OUT_EVERY["valid"])
        yield name, _encode_idx(kept)
        yield name.replace("train", "valid"), _encode_idx(held)


def _split_files(
    split: str, images: NDArray[np.uint8], labels: NDArray[np.uint8]
) -> Iterator[tuple[str, bytes]]:
    yield f"{split}-images-idx3-ubyte.gz", _encode_idx(images)
    yield f"{split}-labels-idx1-ubyte.gz", _encode_idx(labels)


def _encode_idx(values: NDArray[np.uint8]) -> bytes:
    """Packed, the same bytes on every machine."""
    head = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
    return gzip.compress(head + values.tobytes(), mtime=0)
