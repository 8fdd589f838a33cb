"""Small GGUF files, written as the format says, with a tokenizer and the weights of a small Gemma."""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from foveal.config import ModelConfig
from foveal.heads.decoder_lm import DecoderLM
from foveal.interop.gguf.gemma3 import FAMILY
from foveal.models.decoder import language_model

LAYERS, WIDTH, CONTEXT = 2, 32, 24
CONTROL = ["<pad>", "<eos>", "<bos>", "<unk>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
WORDS = [
    "\n",
    "\n\n",
    "  ",
    "\u2581",
    *"abcdefghinorstwxyz",
    "th",
    "the",
    "\u2581the",
    "at",
    "cat",
    "\u2581cat",
]
TOKENS = [*CONTROL, *BYTES, *WORDS]
TYPES = [3] * len(CONTROL) + [6] * len(BYTES) + [4, 4, 4] + [1] * (len(WORDS) - 3)
SETTINGS: dict[str, Any] = {
    "general.architecture": "gemma3",
    "gemma3.context_length": CONTEXT,
    "gemma3.embedding_length": WIDTH,
    "gemma3.block_count": LAYERS,
    "gemma3.feed_forward_length": 64,
    "gemma3.attention.head_count": 4,
    "gemma3.attention.head_count_kv": 1,
    "gemma3.attention.key_length": 16,
    "gemma3.attention.layer_norm_rms_epsilon": 1e-6,
    "gemma3.attention.sliding_window": 5,
    "gemma3.rope.freq_base": 1e6,
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.token_type": TYPES,
    "tokenizer.ggml.bos_token_id": 2,
    "tokenizer.ggml.add_space_prefix": False,
}
CONFIG = ModelConfig.model_validate(
    {
        "mixers": "attention",
        "layers": LAYERS,
        "width": WIDTH,
        "embedding_scale": True,
        "attention": {
            "heads": 4,
            "key_heads": 1,
            "head_width": 16,
            "qk_norm": True,
            "bias": False,
            "window": 5,
        },
        "positions": {"kind": "rotary"},
        "feedforward": "geglu",
        "expansion": 3.0,
        "norm": "rms",
        "norm_placement": "both",
        "norm_epsilon": 1e-6,
        "residual": True,
        "tie_embeddings": True,
        "projection_bias": False,
    }
)
"""The model of these settings. None of its two layers is without a window."""


def small_model() -> DecoderLM:
    """Return a model of `CONFIG` with weights that nobody has trained."""
    torch.manual_seed(0)
    model = language_model(CONFIG, len(TOKENS), CONTEXT).eval()
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -0.4, 0.4)
    return model


def tensors_of(model: DecoderLM) -> dict[str, NDArray[Any]]:
    """Return the weights of a model under the names of a GGUF file."""
    weights = FAMILY.to_hf_weights(dict(model.state_dict()), LAYERS, tied=True)
    return {name: tensor.detach().numpy() for name, tensor in weights.items()}


def gguf_bytes(
    metadata: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]], kinds: Mapping[str, int] = {}
) -> bytes:
    """Return a file with tensors in float32; those in `kinds` say that they are of another quantization."""
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for name, value in metadata.items():
        header += _string(name) + _value(value)
    data = b""
    for name, tensor in tensors.items():
        axes = tensor.shape[::-1]
        header += _string(name) + struct.pack("<I", len(axes)) + struct.pack(f"<{len(axes)}Q", *axes)
        header += struct.pack("<IQ", kinds.get(name, 0), len(data))
        data += _padded(np.ascontiguousarray(tensor, "<f4").tobytes())
    return _padded(header) + data


def write_small_gguf(path: Path, **changes: Any) -> Path:
    """Write a small Gemma, with other settings by the last part of their name."""
    names = {name.rpartition(".")[2]: name for name in SETTINGS}
    settings = SETTINGS | {names[name]: value for name, value in changes.items()}
    path.write_bytes(gguf_bytes(settings, tensors_of(small_model())))
    return path


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value: Any) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    first = struct.pack("<IIQ", 9, 8 if isinstance(value[0], str) else 5, len(value))
    return first + b"".join(
        _string(each) if isinstance(each, str) else struct.pack("<i", each) for each in value
    )


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 32)
