"""Columns in files: written as a stream, and read through a memory map, so they can have any size.

A column is a file of numbers, and for rows of different lengths a second file with their offsets. Arrays of
different shapes have a third file with the shapes. Signed integers are written in the smallest type that
holds all of them. JSON values are rows of bytes.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from foveal.core.parse_json import parse_json
from foveal.data.core.examples import Column, RaggedArray
from foveal.data.core.hash_split import text_hash

T = TypeVar("T")
BLOCK_NUMBERS = 1 << 20
"""Numbers that are in memory at a time while a file gets a larger type."""
READ_VALUES = 4096
"""Values that are in memory at a time while all are read."""
VALUES, OFFSETS, SHAPES = "values", "offsets", "shapes"
to_json = json.JSONEncoder(ensure_ascii=False).encode
FileTypes = dict[str, list[Any]]
"""The type of the numbers in each file, and the shape that follows the first axis."""


class ArrayWriter:
    """Appends arrays (N, ...) of equal kind and shape to a file."""

    def __init__(self, path: Path):
        self._path, self._file = path, path.open("wb")
        self._type: np.dtype[Any] | None = None
        self._shape: tuple[int, ...] = ()

    def write(self, values: NDArray[Any]) -> None:
        """Append an array. If its numbers do not fit the type of the file, the file is written again."""
        needed = _smallest_type(values)
        wide = needed if self._type is None else np.promote_types(self._type, needed)
        if self._type not in (None, wide):
            self._widen(wide)
        self._type = wide
        if len(values):
            self._shape = values.shape[1:]
        self._file.write(np.ascontiguousarray(values.astype(wide)).data)

    def _widen(self, wide: np.dtype[Any]) -> None:
        self._file.close()
        wider = self._path.with_suffix(".wider")
        with self._path.open("rb") as narrow, wider.open("wb") as file:
            while len(block := np.fromfile(narrow, self._type, BLOCK_NUMBERS)):
                file.write(block.astype(wide).data)
        os.replace(wider, self._path)
        self._file = self._path.open("ab")

    def close(self) -> list[Any]:
        """Sync the file. Return its type and shape."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        kind = np.dtype(np.uint8) if self._type is None else self._type
        return [kind.newbyteorder("<").str, [*self._shape]]


def _smallest_type(values: NDArray[Any]) -> np.dtype[Any]:
    """Return the smallest type for signed integers. Hashes, which are unsigned, and fractions keep theirs."""
    if values.dtype.kind != "i":
        return values.dtype
    needed = np.promote_types(
        np.min_scalar_type(values.max(initial=0)), np.min_scalar_type(values.min(initial=0))
    )
    return np.dtype(np.int64) if needed.itemsize == 8 else needed


class ColumnsWriter:
    """Appends rows to the columns of a folder. The names of files begin with `prefix`."""

    def __init__(self, folder: Path, prefix: str):
        self._folder, self._prefix = folder, prefix
        self._files: dict[str, ArrayWriter] = {}
        self._ends: dict[str, int] = {}
        self._places: dict[str, dict[int, int]] = {}

    def write(self, columns: Mapping[str, Column]) -> None:
        """Append the rows of some columns."""
        for name, column in columns.items():
            if isinstance(column, RaggedArray):
                self._write_offsets(name, column.offsets[1:])
                self._write(f"{name}.{VALUES}", column.values)
            else:
                self._write(f"{name}.{VALUES}", column)

    def write_arrays(self, name: str, arrays: Sequence[NDArray[Any]]) -> None:
        """Append arrays of one number of axes to a column, one after the other."""
        if len(arrays):
            self._write_offsets(name, np.cumsum([array.size for array in arrays]))
            self._write(f"{name}.{SHAPES}", np.array([array.shape for array in arrays], np.int64))
        for array in arrays:
            self._write(f"{name}.{VALUES}", array.reshape(-1))

    def write_once(self, name: str, keys: Iterable[str], arrays: Iterable[NDArray[Any]]) -> NDArray[np.int64]:
        """Append those arrays whose keys are new to a column. Return the place of each array in it."""
        place_by_key = self._places.setdefault(name, {})
        places, new = [], []
        for key, array in zip(map(text_hash, keys), arrays, strict=True):
            if key not in place_by_key:
                place_by_key[key] = len(place_by_key)
                new.append(array)
            places.append(place_by_key[key])
        self.write_arrays(name, new)
        return np.array(places, np.int64)

    def _write_offsets(self, name: str, ends: NDArray[Any]) -> None:
        """Append the ends of rows, which are counted from the end of the rows before."""
        if name not in self._ends:
            self._write(f"{name}.{OFFSETS}", np.zeros(1, np.int64))
        before = self._ends.get(name, 0)
        self._write(f"{name}.{OFFSETS}", before + ends)
        self._ends[name] = before + (int(ends[-1]) if len(ends) else 0)

    def _write(self, name: str, values: NDArray[Any]) -> None:
        if name not in self._files:
            self._files[name] = ArrayWriter(self._folder / f"{self._prefix}.{name}")
        self._files[name].write(values)

    def close(self) -> FileTypes:
        """Sync all files, and return their types."""
        return {name: file.close() for name, file in self._files.items()}


@dataclass(frozen=True)
class ShapedArrays(Sequence[NDArray[Any]]):
    """Arrays of different shapes: row i of `flat` has the numbers of array i, of the shape `shapes[i]`."""

    flat: RaggedArray
    shapes: NDArray[Any]

    def __len__(self) -> int:
        return len(self.flat)

    @overload
    def __getitem__(self, index: int) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[NDArray[Any]]: ...
    def __getitem__(self, index: int | slice) -> NDArray[Any] | list[NDArray[Any]]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        return self.flat[index].reshape(self.shapes[index])


def open_columns(folder: Path, prefix: str, types: FileTypes) -> dict[str, Any]:
    """Return the columns that a writer wrote, as memory maps."""
    files = {name: _memory_map(folder / f"{prefix}.{name}", *types[name]) for name in types}
    columns: dict[str, Any] = {}
    for file, values in files.items():
        name, _, part = file.rpartition(".")
        offsets, shapes = files.get(f"{name}.{OFFSETS}"), files.get(f"{name}.{SHAPES}")
        if part == VALUES:
            columns[name] = values if offsets is None else RaggedArray(values, offsets)
            if shapes is not None:
                columns[name] = ShapedArrays(columns[name], shapes)
    return columns


def _memory_map(path: Path, kind: str, shape: Sequence[int]) -> NDArray[Any]:
    if path.stat().st_size == 0:
        return np.zeros((0, *shape), kind)
    return np.asarray(np.memmap(path, kind, mode="r")).reshape(-1, *shape)


def json_column(values: Iterable[Any]) -> RaggedArray:
    """Return values as rows of bytes, each with a comma at its end, so that many are read as one list."""
    encoded = [f"{to_json(value)},".encode("utf-8", "surrogatepass") for value in values]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([*map(len, encoded)], out=offsets[1:])
    return RaggedArray(np.frombuffer(b"".join(encoded), np.uint8), offsets)


def read_json(column: Column, start: int, stop: int) -> list[Any]:
    """Return the values in the rows `start` to `stop` of a column that `json_column` made."""
    assert isinstance(column, RaggedArray)
    content = column.values[column.offsets[start] : column.offsets[stop] - 1].tobytes()
    values: list[Any] = parse_json(f"[{content.decode('utf-8', 'surrogatepass')}]")
    return values


class LazySequence(Sequence[T], Generic[T]):
    """`count` values, which are read when they are asked for. `read` returns those from a start to a stop."""

    def __init__(self, count: int, read: Callable[[int, int], list[T]]):
        self._count, self._read = count, read

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        chosen = range(self._count)[index]
        if isinstance(chosen, int):
            return self._read(chosen, chosen + 1)[0]
        if chosen.step == 1 and chosen:
            return self._read(chosen.start, chosen.stop)
        return [self[i] for i in chosen]

    def __iter__(self) -> Iterator[T]:
        for start in range(0, self._count, READ_VALUES):
            yield from self._read(start, min(self._count, start + READ_VALUES))
