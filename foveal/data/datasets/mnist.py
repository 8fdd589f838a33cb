"""MNIST and Fashion-MNIST: small grayscale images of digits and of clothes in ten classes, as splits in IDX
files."""

import gzip
import struct
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveal.core.parse_json import parse_json
from foveal.data.files.archives import NamedContents

DIGIT_SIDE = 28
HELD_OUT_EVERY = {"test": 10, "valid": 20}
"""The last tenth of each digit's images is the test split; the last twentieth of the rest is `valid`."""


class Digits(NamedTuple):
    """`images` (N, 28, 28) with background 0 and ink 255, and `labels` (N,), 0 to 9."""

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]


def digit_splits(files: NamedContents) -> dict[str, Digits]:
    """Return the digits of the package `mnist` by split.

    `D.json` has the images of digit D under `data`, concatenated, with pixel values from 0 to 1.
    """
    splits: dict[str, list[Digits]] = {"train": [], "valid": [], "test": []}
    for name, content in sorted(files):
        levels = np.array(parse_json(content)["data"])
        images = np.rint(255 * levels).astype(np.uint8).reshape(-1, DIGIT_SIDE, DIGIT_SIDE)
        for split, divisor in HELD_OUT_EVERY.items():
            held_out, images = _split_off_last(images, divisor)
            splits[split].append(_with_label(held_out, int(PurePosixPath(name).stem)))
        splits["train"].append(_with_label(images, int(PurePosixPath(name).stem)))
    return {
        split: Digits(*map(np.concatenate, zip(*digits, strict=True))) for split, digits in splits.items()
    }


def _split_off_last(images: NDArray[Any], divisor: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the last 1 / `divisor` of the images, and all images before."""
    start = len(images) - len(images) // divisor
    return images[start:], images[:start]


def _with_label(images: NDArray[np.uint8], digit: int) -> Digits:
    return Digits(images, np.full(len(images), digit, np.uint8))


def mnist_files(files: NamedContents) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the splits of `digit_splits`."""
    for split, digits in digit_splits(files).items():
        yield from _split_files(split, *digits)


def fashion_mnist_files(files: NamedContents) -> Iterator[tuple[str, bytes]]:
    """Yield the files of Fashion-MNIST. The split `valid` is the last twentieth of the training images."""
    for name, content in files:
        if not name.startswith("train"):
            yield name, content
            continue
        values = np.frombuffer(gzip.decompress(content), np.uint8)
        header_size = 4 + 4 * int(values[3])
        shape = struct.unpack(f">{values[3]}I", values[4:header_size].tobytes())
        held_out, train = _split_off_last(values[header_size:].reshape(shape), HELD_OUT_EVERY["valid"])
        yield name, _encode_idx(train)
        yield name.replace("train", "valid"), _encode_idx(held_out)


def _split_files(
    split: str, images: NDArray[np.uint8], labels: NDArray[np.uint8]
) -> Iterator[tuple[str, bytes]]:
    yield f"{split}-images-idx3-ubyte.gz", _encode_idx(images)
    yield f"{split}-labels-idx1-ubyte.gz", _encode_idx(labels)


def _encode_idx(values: NDArray[np.uint8]) -> bytes:
    """Return a compressed IDX file, with the same bytes on every machine."""
    header = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
    return gzip.compress(header + values.tobytes(), mtime=0)
