"""Tensors of a checkpoint, which several processes may have written in parts. What is asked for is read.

The files of a group `weights` are `weights.safetensors`, or `weights-0.safetensors`, `weights-1.safetensors`
and so on. The header of such a file says which rows of a whole tensor each of its tensors has.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json
from foveal.core.stored_tensor import Span, StoredTensor

PARTS_KEY = "parts"


def is_of_group(name: str, group: str) -> bool:
    """Return whether a file of a checkpoint is one of a group."""
    return re.fullmatch(rf"{re.escape(group)}(-\d+)?\.safetensors", name) is not None


def open_group(paths: Sequence[Path]) -> dict[str, StoredTensor]:
    """Return the tensors in the files of a group. The files are verified, and are read when a tensor is.

    Raises: UserError: a file is none of Foveal, or a part of a tensor is missing.
    """
    pieces = dict[str, list[tuple[Span | None, Tensor, Path]]]()
    for path in sorted(paths):
        try:
            with safe_open(path, "pt") as file:
                facts = parse_json(file.metadata()["foveal"])
                for name in file.keys():  # noqa: SIM118  # no mapping
                    span = facts.get(PARTS_KEY, {}).get(name)
                    piece = None if span is None else Span(*span)
                    pieces.setdefault(name, []).append((piece, file.get_tensor(name), path))
        except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OSError):
            raise UserError(
                f"{path}: not a safetensors file of Foveal (pickle is never read); restore it"
            ) from None
    return {name: _joined(name, parts) for name, parts in pieces.items()}


def _joined(name: str, parts: list[tuple[Span | None, Tensor, Path]]) -> StoredTensor:
    """Return a tensor from its parts, which are in any order."""
    span, tensor, path = parts[0]
    if span is None and len(parts) == 1:
        return StoredTensor([tensor])
    spans = [(each, tensor) for each, tensor, _ in parts if each is not None]
    spans.sort(key=lambda pair: pair[0].start)
    end, first = 0, spans[0][0] if spans else None
    for each, tensor in spans:
        assert first is not None
        same = (each.axis, each.length) == (first.axis, first.length) and 0 <= each.axis < tensor.dim()
        end = end + tensor.shape[each.axis] if same and each.start == end else -1
        if end < 0:
            break
    if first is None or len(spans) < len(parts) or end != first.length:
        raise UserError(f"{path}: a part of {name} is missing, or there twice; restore the checkpoint")
    return StoredTensor([tensor for _, tensor in spans], first.axis)
