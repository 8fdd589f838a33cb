"""A tensor in a file, or in the files of several processes, of which each reads what it needs."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Box(NamedTuple):
    """Where a part lies in a whole tensor: its first index along each axis, and the whole shape."""

    start: tuple[int, ...]
    shape: tuple[int, ...]


class Piece(NamedTuple):
    """A part of a tensor, and its first index along each axis."""

    start: tuple[int, ...]
    values: Tensor


class StoredTensor:
    """A tensor of the given shape in pieces, which fill it.

    Raises: ValueError: the pieces overlap, or leave something out.
    """

    def __init__(self, pieces: Sequence[Piece], shape: Sequence[int]):
        self._pieces, self.shape = pieces, torch.Size(shape)
        self.dtype = pieces[0].values.dtype
        if len(pieces) == 1:
            fills = pieces[0].values.shape == self.shape
        else:
            boxes = [_slices(start, values.shape) for start, values in pieces]
            fills = sum(values.numel() for _, values in pieces) == self.shape.numel() and not any(
                all(_overlap(*pair) for pair in zip(one, other, strict=True))
                for at, one in enumerate(boxes)
                for other in boxes[:at]
            )
        if not fills:
            raise ValueError("the pieces do not fill the tensor")

    def dim(self) -> int:
        return len(self.shape)

    def whole(self) -> Tensor:
        """Return the tensor in storage of its own."""
        return self.read((0,) * self.dim(), self.shape)

    def read(self, start: Sequence[int], shape: Sequence[int]) -> Tensor:
        """Return the part of the given shape that begins at `start`, in storage of its own."""
        part = self._pieces[0].values.new_empty(tuple(shape))
        wanted = _slices(start, shape)
        for piece in self._pieces:
            common = [
                _overlap(*pair) for pair in zip(wanted, _slices(piece.start, piece.values.shape), strict=True)
            ]
            if all(common) or not self.dim():
                part[_within(common, start)] = piece.values[_within(common, piece.start)]
        return part


def _slices(start: Sequence[int], shape: Sequence[int]) -> list[range]:
    return [range(first, first + length) for first, length in zip(start, shape, strict=True)]


def _overlap(one: range, other: range) -> range:
    return range(max(one.start, other.start), min(one.stop, other.stop))


def _within(common: Sequence[range], start: Sequence[int]) -> tuple[slice, ...]:
    """Return slices of a part that begins at `start`."""
    return tuple(
        slice(rows.start - first, rows.stop - first) for rows, first in zip(common, start, strict=True)
    )


def in_one_piece(tensors: Mapping[str, Tensor]) -> dict[str, StoredTensor]:
    """Return tensors in memory as stored ones."""
    return {
        name: StoredTensor([Piece((0,) * tensor.dim(), tensor)], tensor.shape)
        for name, tensor in tensors.items()
    }
