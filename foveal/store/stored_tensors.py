"""Tensors of a checkpoint, which several processes may have written in parts. What is asked for is read.

The files of a group `weights` are `weights.safetensors`, or `weights-0.safetensors`, `weights-1.safetensors`
and so on. The header of such a file says where each of its tensors lies in a whole one.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from safetensors import SafetensorError, safe_open

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json
from foveal.core.stored_tensor import Piece, StoredTensor

PARTS_KEY = "parts"


def is_of_group(name: str, group: str) -> bool:
    """Return whether a file of a checkpoint is one of a group."""
    return re.fullmatch(rf"{re.escape(group)}(-\d+)?\.safetensors", name) is not None


def open_group(paths: Sequence[Path]) -> dict[str, StoredTensor]:
    """Return the tensors in the files of a group. The files are verified, and are read when a tensor is.

    Raises: UserError: a file is none of Foveal, or a part of a tensor is missing.
    """
    pieces, shapes = dict[str, list[Piece]](), dict[str, set[tuple[int, ...]]]()
    for path in sorted(paths):
        try:
            with safe_open(path, "pt") as file:
                facts = parse_json(file.metadata()["foveal"])
                for name in file.keys():  # noqa: SIM118  # no mapping
                    values = file.get_tensor(name)
                    start, shape = facts.get(PARTS_KEY, {}).get(name, ([0] * values.dim(), values.shape))
                    pieces.setdefault(name, []).append(Piece(tuple(start), values))
                    shapes.setdefault(name, set()).add(tuple(shape))
        except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OSError):
            raise UserError(
                f"{path}: not a safetensors file of Foveal (pickle is never read); restore it"
            ) from None
    return {name: _joined(name, parts, shapes[name], paths[0]) for name, parts in pieces.items()}


def _joined(name: str, parts: list[Piece], shapes: set[tuple[int, ...]], path: Path) -> StoredTensor:
    """Return a tensor from its parts, which are in any order."""
    try:
        (shape,) = shapes
        return StoredTensor(parts, shape)
    except ValueError:
        raise UserError(
            f"{path}: a part of {name} is missing, or there twice; restore the checkpoint"
        ) from None
