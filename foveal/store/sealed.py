"""Safetensors that contain their own sha256, so that any changed byte is detected; JSON is in `sealed_json`.

Nothing is ever unpickled. Tensors are safetensors, and everything else is JSON.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json
from foveal.core.stored_tensor import StoredTensor
from foveal.store.durable import Chunk, sha256_of
from foveal.store.safetensors_bytes import file_order, safetensors_header, tensor_bytes
from foveal.store.sealed_json import open_json as open_json
from foveal.store.sealed_json import seal_json as seal_json

MAX_HEADER_BYTES = 1 << 24
"""Maximum size of a header, enough for several hundred thousand tensors."""
MAX_DIFFERENCES = 20
"""Differences between weights and a model that an error lists."""
Shaped = Tensor | StoredTensor
"""A tensor, in memory or stored."""
_BLANK_SHA256 = "0" * 64
_OPENING = b'{\\"sha256\\":\\"'


def seal_tensors(tensors: dict[str, Tensor], metadata: dict[str, Any]) -> bytes:
    """Return safetensors whose header has the entry `foveal`: `metadata` and the sha256 of all
    other bytes."""
    return b"".join(sealed_chunks(tensors, metadata))


def sealed_chunks(tensors: dict[str, Tensor], metadata: dict[str, Any]) -> list[Chunk]:
    """Return what `seal_tensors` returns, in pieces. They are views of tensors that are contiguous and on a
    CPU, which must not change before the pieces are written."""
    facts = json.dumps({"sha256": _BLANK_SHA256, **metadata}, separators=(",", ":"), allow_nan=False)
    header = bytearray(safetensors_header(tensors, {"foveal": facts}))
    contents = [tensor_bytes(tensors[name]) for name in file_order(tensors)]
    digest = sha256_of((header, *contents))
    start = header.index(_OPENING) + len(_OPENING)
    header[start : start + 64] = digest.encode()
    return [bytes(header), *contents]


def open_tensors(content: bytes, name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and metadata that `seal_tensors` sealed, in new storage.

    `name` is for the error message.

    Raises: UserError: the content is not safetensors of Foveal, damaged, or edited.
    """
    length = int.from_bytes(content[:8], "little")
    try:
        if length > MAX_HEADER_BYTES:
            raise ValueError
        header = parse_json(content[8 : 8 + length])
        facts = parse_json(header["__metadata__"]["foveal"])
    except (ValueError, KeyError, TypeError):
        raise UserError(
            f"{name}: not a safetensors file of Foveal (pickle is never read); restore it"
        ) from None
    blank = bytearray(content)
    start = blank.find(_OPENING) + len(_OPENING)
    blank[start : start + 64] = _BLANK_SHA256.encode()
    if not isinstance(facts, dict) or facts.pop("sha256", "") != hashlib.sha256(blank).hexdigest():
        raise UserError(f"{name}: damaged or edited: its content does not match its own sha256; restore it")
    try:
        tensors = safetensors.torch.load(content)
    except SafetensorError as error:
        raise UserError(f"{name}: not a safetensors file: {error}") from None
    return {key: tensor.clone() for key, tensor in tensors.items()}, facts


def check_finite(tensors: dict[str, Tensor], name: str) -> None:
    """Check that weights are numbers. `name` is for the error message.

    Raises: UserError: a weight is NaN or infinite.
    """
    for key, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise UserError(
                f"{name}: {key} is not finite (NaN or infinite), so every answer would be wrong: get the "
                "weights again, or train a new run"
            )


def unique_state_dict(model: nn.Module) -> dict[str, Tensor]:
    """Return every parameter once (shared parameters under their first name) and every persistent buffer."""
    parameters = dict(model.named_parameters())
    parameter_names = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    buffers = {name: value for name, value in model.state_dict().items() if name not in parameter_names}
    return {name: tensor.detach() for name, tensor in (parameters | buffers).items()}


def load_weights(model: nn.Module, tensors: dict[str, Tensor], name: str) -> None:
    """Copy `tensors` into the model. Names, shapes and dtypes must match exactly."""
    copy_tensors(unique_state_dict(model), tensors, name)


def copy_tensors(into: dict[str, Tensor], tensors: dict[str, Tensor], name: str) -> None:
    """Copy tensors by name.

    Raises: UserError: names, shapes or dtypes differ.
    """
    check_tensors(into, tensors, name)
    for key, tensor in into.items():
        tensor.copy_(tensors[key])


def check_tensors(into: Mapping[str, Shaped], tensors: Mapping[str, Shaped], name: str) -> None:
    """Check that tensors can be copied by name. `name` is for the error message.

    Raises: UserError: names, shapes or dtypes differ; the message lists the first differences.
    """
    differences = [f"no {key}" for key in into if key not in tensors]
    differences += [f"{key} is not in the model" for key in tensors if key not in into]
    for key in into.keys() & tensors.keys():
        if (actual := _dtype_and_shape(tensors[key])) != (expected := _dtype_and_shape(into[key])):
            differences.append(f"{key} is {actual}, not {expected}")
    if differences:
        first, count = sorted(differences)[:MAX_DIFFERENCES], len(differences) - MAX_DIFFERENCES
        more = f"; and {count:,} more" if count > 0 else ""
        raise UserError(f"{name}: does not fit the model: {'; '.join(first)}{more}")


def _dtype_and_shape(tensor: Shaped) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
