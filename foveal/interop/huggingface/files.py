"""The files of a Hugging Face model folder: JSON and safetensors, whole or in shards, never pickle."""

import re
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json

HF_CONFIG_FILE, HF_WEIGHTS_FILE, HF_INDEX_FILE, HF_TOKENIZER_FILE = (
    "config.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "tokenizer.json",
)
MAX_TENSORS, MAX_HEADER_BYTES = 20_000, 1 << 24
"""Most tensors of a file of weights, and bytes of its header."""


def read_json(path: Path) -> dict[str, Any]:
    """Read the JSON object in a file.

    Raises: UserError: the file can't be read, or has no JSON object.
    """
    try:
        _refuse_special_file(path)
        content = parse_json(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: can't read: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{path}: not JSON; download the folder again") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: not a JSON object; download the folder again")
    return content


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read all tensors by their names.

    Raises: UserError: a file is missing or damaged, or the weights are pickled.
    """
    tensors: dict[str, Tensor] = {}
    if (folder / HF_WEIGHTS_FILE).is_file():
        tensors = _load_safetensors(folder / HF_WEIGHTS_FILE)
    elif (folder / HF_INDEX_FILE).is_file():
        index = folder / HF_INDEX_FILE
        shards = read_json(index).get("weight_map")
        if not isinstance(shards, dict) or not all(
            isinstance(name, str) and re.fullmatch(r"[\w.-]+\.safetensors", name) for name in shards.values()
        ):
            raise UserError(
                f"{index}: its weight_map names files that are not in this folder; download the folder again"
            )
        for name in sorted(set(shards.values())):
            tensors |= _load_safetensors(folder / name)
        if missing := sorted(shards.keys() - tensors.keys()):
            raise UserError(
                f"{index}: {missing[0]} is not in {shards[missing[0]]}; download the folder again"
            )
    elif pickled := sorted(folder.glob("pytorch_model*.bin")):
        raise UserError(
            f"{pickled[0]}: pickle files are never read; convert the folder: transformers' "
            f"AutoModelForCausalLM.from_pretrained(...).save_pretrained(...) writes {HF_WEIGHTS_FILE}"
        )
    else:
        raise UserError(f"{folder}: it has no {HF_WEIGHTS_FILE}: name a Hugging Face model folder")
    return tensors


def _refuse_special_file(path: Path) -> None:
    """Check that a file is not one that would be waited for. Links are followed, because the files of a
    download cache are links.

    Raises: UserError: the path is a folder or a special file.
    """
    if path.exists() and not path.is_file():
        raise UserError(f"{path}: can't read: not a regular file; download the folder again")


def _check_header(path: Path) -> None:
    """Check that a file has no more tensors than a model: loading them takes long.

    Raises: UserError: the file has implausibly many tensors.
    """
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = file.read(min(size, MAX_HEADER_BYTES))
    if header.startswith(b"{") and (size > MAX_HEADER_BYTES or header.count(b'"data_offsets"') > MAX_TENSORS):
        raise UserError(f"{path}: over {MAX_TENSORS:,} tensors, too many for a model; download it again")


def _load_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        _refuse_special_file(path)
        _check_header(path)
        return safetensors.torch.load_file(path)
    except OSError as error:
        raise UserError(f"{path}: can't read: {error.strerror or error}") from None
    except SafetensorError as error:
        raise UserError(f"{path}: not a safetensors file, or cut off ({error}); download it again") from None
