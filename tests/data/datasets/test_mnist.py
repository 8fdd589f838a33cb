"""The digits' parts: the last of each are held out, none is lost, and what is written is read back."""

import gzip
import json
import struct
from pathlib import Path

import numpy as np

from foveal.config import DataConfig
from foveal.data import prepare_examples
from foveal.data.datasets.mnist import digit_splits, fashion_mnist_files, mnist_files
from tests.support.pair_formats import IMAGE_LABEL

COUNTS = {digit: 40 + digit for digit in range(10)}


def lists() -> list[tuple[str, bytes]]:
    """Return lists of images for each digit. Their first two pixels hold the digit and the number of the
    image."""
    found = []
    for digit, count in COUNTS.items():
        images = np.zeros((count, 784))
        images[:, 0], images[:, 1] = digit / 255, np.arange(count) / 255
        found.append((f"{digit}.json", json.dumps({"data": images.round(4).ravel().tolist()}).encode()))
    return found


def test_the_last_of_each_digit_are_held_out() -> None:
    made = digit_splits(reversed(lists()))
    assert sum(len(digits.labels) for digits in made.values()) == sum(COUNTS.values())
    for part, digits in made.items():
        assert digits.images.shape == (len(digits.labels), 28, 28)
        assert np.array_equal(digits.images[:, 0, 0], digits.labels)
        for digit, count in COUNTS.items():
            numbers = digits.images[digits.labels == digit, 0, 1]
            held = count - count // 10
            rest = held - held // 20
            first, end = {"train": (0, rest), "valid": (rest, held), "test": (held, count)}[part]
            assert numbers.tolist() == [*range(first, end)]


def test_what_is_written_is_read_as_images(tmp_path: Path) -> None:
    for name, content in mnist_files(lists()):
        (tmp_path / name).write_bytes(content)
    data_format = IMAGE_LABEL
    config = DataConfig.model_validate({"image": {"size": 28, "channels": 1}})
    found = prepare_examples.prepare_examples(data_format, str(tmp_path), None, None, config, print)
    sizes = {part: facts["examples"] for part, facts in found.facts["parts"].items()}
    assert sizes == {part: len(digits.labels) for part, digits in digit_splits(lists()).items()}
    assert found.processor.target.labels == tuple("0123456789")


def test_of_clothes_the_last_twentieth_is_for_validation() -> None:
    labels = np.arange(40, dtype=np.uint8)
    head = struct.pack(">HBBI", 0, 8, 1, 40)
    files = [("train-labels-idx1-ubyte.gz", gzip.compress(head + labels.tobytes())), ("t10k-a.gz", b"as is")]
    made = dict(fashion_mnist_files(files))
    assert made["t10k-a.gz"] == b"as is"
    kept, held = (gzip.decompress(made[f"{part}-labels-idx1-ubyte.gz"]) for part in ("train", "valid"))
    assert [*kept[8:]] == [*range(38)]
    assert [*held[8:]] == [38, 39]
    assert kept[:8] == struct.pack(">HBBI", 0, 8, 1, 38)
