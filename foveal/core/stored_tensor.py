"""A tensor in a file, or in the files of several processes, of which each reads the rows that it needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Span:
    """The rows that a part has of a whole tensor: from `start` on, along an axis of the whole `length`."""

    axis: int
    start: int
    length: int


class StoredTensor:
    """A tensor that is cut along an axis into pieces, which follow each other."""

    def __init__(self, pieces: Sequence[Tensor], axis: int = 0):
        self._pieces, self._axis = pieces, axis
        self.dtype, shape = pieces[0].dtype, [*pieces[0].shape]
        if len(pieces) > 1:
            shape[axis] = sum(piece.shape[axis] for piece in pieces)
        self.shape = torch.Size(shape)

    def dim(self) -> int:
        return len(self.shape)

    def whole(self) -> Tensor:
        """Return the tensor in storage of its own."""
        return torch.cat([*self._pieces], self._axis) if len(self._pieces) > 1 else self._pieces[0].clone()

    def narrow(self, axis: int, start: int, length: int) -> Tensor:
        """Return `length` rows along an axis, in storage of their own."""
        if len(self._pieces) == 1:
            return self._pieces[0].narrow(axis, start, length).clone()
        if axis != self._axis:
            return torch.cat([piece.narrow(axis, start, length) for piece in self._pieces], self._axis)
        rows, first = list[Tensor](), 0
        for piece in self._pieces:
            last = first + piece.shape[axis]
            begin, end = max(first, start), min(last, start + length)
            if begin < end:
                rows.append(piece.narrow(axis, begin - first, end - begin))
            first = last
        return torch.cat(rows, axis) if rows else self._pieces[0].narrow(axis, 0, 0).clone()


def in_one_piece(tensors: Mapping[str, Tensor]) -> dict[str, StoredTensor]:
    """Return tensors in memory as stored ones."""
    return {name: StoredTensor([tensor]) for name, tensor in tensors.items()}
