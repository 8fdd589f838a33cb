"""The parts of a GGUF file: its metadata, and where its tensors are. Every size is checked before it is used.

The format: "GGUF", a version, the numbers of tensors and of entries; the entries, each a name, a type and a
value; name, shape, quantization and place of each tensor; and their bytes, from the next multiple of the
alignment on (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
"""

import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from foveal.core.errors import UserError
from foveal.interop.gguf.dequantize import QUANTIZATIONS, dequantize

GGUF_SUFFIX = ".gguf"
MAGIC, VERSIONS = b"GGUF", (2, 3)
MAX_TENSORS, MAX_ENTRIES, MAX_AXES, MAX_ALIGNMENT = 20_000, 10_000, 4, 1 << 16
"""Most tensors and entries of a file, axes of a tensor, and bytes of the alignment."""
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""The numbers and truth values among the types of values, as `struct` names them."""
STRING, ARRAY = 8, 9
Content = bytes | mmap.mmap


class DamagedError(ValueError):
    """A file is cut off or damaged."""


@dataclass(frozen=True)
class StoredWeights:
    """A tensor in the file: its shape, the number of its quantization, and its bytes from `start` on."""

    shape: tuple[int, ...]
    quantization: int
    start: int


@dataclass(frozen=True)
class GGUFFile:
    """The content of the file `path`: `metadata` by name, and `stored` tensors by name."""

    path: Path
    content: Content
    metadata: dict[str, Any]
    stored: dict[str, StoredWeights]

    def setting(self, name: str) -> Any:
        """Return a value of the metadata.

        Raises: UserError: there is none.
        """
        if name not in self.metadata:
            raise self.error(f"it has no {name}, which a language model needs")
        return self.metadata[name]

    def error(self, reason: str) -> UserError:
        return UserError(f"{self.path}: {reason}")

    def tensor(self, name: str) -> Tensor:
        """Return a tensor in float32.

        Raises: UserError: its quantization is unknown, or its bytes are not all there.
        """
        shape, number, start = (each := self.stored[name]).shape, each.quantization, each.start
        if number not in QUANTIZATIONS:
            known = ", ".join(each.name for each in QUANTIZATIONS.values())
            raise UserError(f"{self.path}: {name} has the quantization {number}; Foveal reads only {known}")
        quantization = QUANTIZATIONS[number]
        if shape[-1] % quantization.block:
            raise damaged(self.path, f"{name} has rows of {shape[-1]} numbers")
        size = int(np.prod(shape, dtype=object)) // quantization.block * quantization.bytes
        if start + size > len(self.content):
            raise damaged(self.path, f"{name} is not whole")
        blocks = np.frombuffer(self.content, np.uint8, size, start).reshape(-1, quantization.bytes)
        return dequantize(quantization, blocks).reshape(shape)

    def check_sizes(self) -> None:
        """Check that the tensors have no more bytes than the file, so that none of them are shared.

        Raises: UserError: they have more.
        """
        numbers = sum(int(np.prod(each.shape, dtype=object)) for each in self.stored.values())
        if numbers > 8 * len(self.content):  # no quantization has less than a bit a number
            raise damaged(self.path, f"{numbers:,} numbers in {len(self.content):,} bytes")


def damaged(path: Path, reason: str) -> UserError:
    """Return the error of a file that is cut off or damaged."""
    return UserError(f"{path}: not a GGUF file, or cut off ({reason}); get it again")


def open_gguf(path: Path) -> GGUFFile:
    """Open a file.

    Raises: UserError: it can't be read, or is damaged.
    """
    try:
        with path.open("rb") as file:
            return parse_gguf(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), path)
    except OSError as error:
        raise UserError(f"{path}: can't read: {error.strerror}") from None
    except ValueError:  # an empty file can't be mapped
        raise damaged(path, "empty") from None


def parse_gguf(content: Content, path: Path) -> GGUFFile:
    """Return the parts of a file with this content.

    Raises: UserError: it is damaged.
    """
    try:
        metadata, stored = _read_header(_Cursor(content))
    except (DamagedError, struct.error, UnicodeDecodeError) as error:
        raise damaged(path, str(error)[:80]) from None
    file = GGUFFile(path, content, metadata, stored)
    file.check_sizes()
    return file


class _Cursor:
    """Reads values one after another."""

    def __init__(self, content: Content):
        self.content, self.place = content, 0

    def bytes(self, size: int) -> bytes:
        if size > len(self.content) - self.place:
            raise DamagedError(f"it ends at byte {len(self.content):,}")
        self.place += size
        return self.content[self.place - size : self.place]

    def number(self, kind: str) -> Any:
        return struct.unpack(f"<{kind}", self.bytes(struct.calcsize(f"<{kind}")))[0]

    def string(self) -> str:
        return self.bytes(self.number("Q")).decode()

    def count(self, maximum: int, things: str, kind: str = "Q") -> int:
        count: int = self.number(kind)
        if count > maximum:
            raise DamagedError(f"{count:,} {things}")
        return count

    def value(self, kind: int) -> Any:
        """Return a value of a type: a number, a truth value, a string, or an array of them."""
        if kind in NUMBERS:
            return self.number(NUMBERS[kind])
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            raise DamagedError(f"a value of type {kind}")
        inner, count = self.number("I"), self.number("Q")
        if inner in NUMBERS:
            numbers = np.dtype(NUMBERS[inner]).newbyteorder("<")
            return np.frombuffer(self.bytes(count * numbers.itemsize), numbers).tolist()
        if inner != STRING or count > len(self.content):
            raise DamagedError(f"an array of {count:,} values of type {inner}")
        return [self.string() for _ in range(count)]


def _read_header(cursor: _Cursor) -> tuple[dict[str, Any], dict[str, StoredWeights]]:
    """Return metadata and tensors by their names.

    Raises: DamagedError: a value is not as the format says.
    """
    if cursor.bytes(len(MAGIC)) != MAGIC:
        raise DamagedError("it does not begin with GGUF")
    if (version := cursor.number("I")) not in VERSIONS:
        raise DamagedError(f"version {version}, and Foveal reads 2 and 3")
    tensors = cursor.count(MAX_TENSORS, "tensors")
    entries = cursor.count(MAX_ENTRIES, "entries")
    metadata = _by_name(entries, cursor, lambda: cursor.value(cursor.number("I")))
    stored = _by_name(tensors, cursor, lambda: _read_place(cursor))
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or not 1 <= alignment <= MAX_ALIGNMENT:
        raise DamagedError(f"alignment {alignment}")
    start = -(-cursor.place // alignment) * alignment
    return metadata, {
        name: StoredWeights(shape, quantization, start + offset)
        for name, (shape, quantization, offset) in stored.items()
    }


def _by_name(count: int, cursor: _Cursor, read: Callable[[], Any]) -> dict[str, Any]:
    """Return `count` values, each of which `read` reads behind its name.

    Raises: DamagedError: two have the same name.
    """
    values: dict[str, Any] = {}
    for _ in range(count):
        name = cursor.string()
        if name in values:
            raise DamagedError(f"{name[:40]} twice")
        values[name] = read()
    return values


def _read_place(cursor: _Cursor) -> tuple[tuple[int, ...], int, int]:
    """Return a tensor's shape, quantization and offset. The last axis comes first in the file."""
    axes = cursor.count(MAX_AXES, "axes", "I")
    shape = tuple(cursor.number("Q") for _ in range(axes))[::-1]
    if not shape or min(shape) < 1:
        raise DamagedError(f"a tensor of shape {list(shape)}")
    return shape, cursor.number("I"), cursor.number("Q")
