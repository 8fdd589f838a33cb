"""GGUF files: their parts, and one line for those that are cut off, damaged or hostile."""

import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foveal.core.errors import UserError
from foveal.interop.gguf.file import open_gguf
from foveal.interop.gguf.model import read_gguf_model
from tests.support.gguf_files import SETTINGS, gguf_bytes, small_model, tensors_of

ENTRIES: dict[str, Any] = {"a": "text", "b": 7, "c": 0.5, "d": True, "e": ["x", "yz"], "f": [1, -2, 3]}
TENSORS = {"w": np.arange(12.0).reshape(3, 4), "v": np.ones(5)}


def read_all(path: Path) -> None:
    file = open_gguf(path)
    for name in file.stored:
        file.tensor(name)


def is_refused(read: Callable[[], object]) -> bool:
    """Return whether a file is refused, in one line; other errors are not caught."""
    try:
        read()
    except UserError as error:
        lines = str(error).count("\n") + 1
    else:
        return False
    assert lines == 1
    return True


def refused(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        read_all(path)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < len(str(path)) + 200
    return str(error.value)


def test_the_parts_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(gguf_bytes(ENTRIES, TENSORS))
    file = open_gguf(tmp_path / "x.gguf")
    assert file.metadata == ENTRIES
    assert torch.equal(file.tensor("w"), torch.arange(12.0).view(3, 4))
    assert torch.equal(file.tensor("v"), torch.ones(5))


def test_every_cut_is_refused(tmp_path: Path) -> None:
    whole = gguf_bytes(ENTRIES, TENSORS)
    end = len(whole) - 12  # the last tensor has 20 of 32 bytes
    for size in range(0, end, 3):
        refused(tmp_path / "x.gguf", whole[:size])
    refused(tmp_path / "x.gguf", whole[: end - 1])


def test_flipped_bytes_are_read_or_refused(tmp_path: Path) -> None:
    whole, random_numbers, path = gguf_bytes(ENTRIES, TENSORS), random.Random(0), tmp_path / "x.gguf"
    refusals = 0
    for _ in range(1500):
        content = bytearray(whole)
        for _ in range(random_numbers.choice([1, 1, 2, 8])):
            content[random_numbers.randrange(len(content))] = random_numbers.choice([0, 1, 9, 127, 128, 255])
        path.write_bytes(content)
        refusals += is_refused(lambda: read_all(path))
    assert refusals > 300


def test_random_bytes_are_refused(tmp_path: Path) -> None:
    random_numbers = random.Random(1)
    for size in (0, 3, 24, 500):
        refused(tmp_path / "x.gguf", random_numbers.randbytes(size))
        refused(tmp_path / "x.gguf", b"GGUF" + struct.pack("<I", 3) + random_numbers.randbytes(size))


def header(tensors: int, entries: int, rest: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, entries) + rest


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"GGUF" + struct.pack("<I", 1), "version 1, and Foveal reads 2 and 3"),
        (b"PK\3\4" + bytes(50), "it does not begin with GGUF"),
        (header(1 << 60, 0), "tensors"),
        (header(0, 1 << 60), "entries"),
        (header(0, 1, struct.pack("<Q", 1 << 62)), "it ends at byte"),
        (header(0, 1, struct.pack("<Q1sI", 1, b"a", 99)), "a value of type 99"),
        (header(0, 1, struct.pack("<Q1sIIQ", 1, b"a", 9, 4, 1 << 60)), "it ends at byte"),
        (header(0, 1, struct.pack("<Q1sIIQ", 1, b"a", 9, 8, 1 << 60)), "an array of"),
        (header(0, 1, struct.pack("<Q1sIIQ", 1, b"a", 9, 9, 1)), "values of type 9"),
        (header(0, 1, struct.pack("<Q2sIB", 2, b"\xff\xff", 0, 1)), "utf-8"),
        (header(0, 2, 2 * struct.pack("<Q1sIB", 1, b"a", 0, 1)), "a twice"),
        (header(1, 0, struct.pack("<Q1sI", 1, b"w", 9)), "9 axes"),
        (header(1, 0, struct.pack("<Q1sIQIQ", 1, b"w", 1, 0, 0, 0)), "a tensor of shape [0]"),
        (header(1, 0, struct.pack("<Q1sIQQIQ", 1, b"w", 2, 1 << 60, 1 << 60, 0, 0)), "numbers in"),
        (header(1, 0, struct.pack("<Q1sIQIQ", 1, b"w", 1, 4, 0, 1 << 62)), "w is not whole"),
        (header(1, 0, struct.pack("<Q1sIQIQ", 1, b"w", 1, 33, 8, 0)), "w has rows of 33 numbers"),
        (header(1, 0, struct.pack("<Q1sIQIQ", 1, b"w", 1, 32, 10, 0)), "w has the quantization 10"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, content: bytes, reason: str) -> None:
    assert reason in refused(tmp_path / "x.gguf", content)


def test_many_tensors_of_the_same_bytes_are_refused(tmp_path: Path) -> None:
    place = struct.pack("<IQIQ", 1, 1 << 12, 0, 0)
    tensors = b"".join(struct.pack("<Q4s", 4, b"%04d" % number) + place for number in range(4000))
    content = header(4000, 0, tensors)
    assert "16,384,000 numbers in" in refused(tmp_path / "x.gguf", content)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "no.gguf", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(UserError, match=f"can't read: {reason}"):
            open_gguf(path)


def test_a_model_with_flipped_bytes_is_read_or_refused(tmp_path: Path) -> None:
    """Of the settings and the tokenizer, too."""
    whole, random_numbers, path = (
        gguf_bytes(SETTINGS, tensors_of(small_model())),
        random.Random(2),
        tmp_path / "x",
    )
    end, refusals = whole.index(b"blk.0"), 0
    for _ in range(150):
        content = bytearray(whole)
        for _ in range(random_numbers.choice([1, 2, 5])):
            content[random_numbers.randrange(end)] = random_numbers.randrange(256)
        path.write_bytes(content)
        refusals += is_refused(lambda: read_gguf_model(open_gguf(path)))
    assert refusals > 30
