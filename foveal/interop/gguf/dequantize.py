"""Quantized weights of GGUF files as float32. Each block of a row has its own scale d, in float16.

    Q8_0    x = d q                 32 numbers, q of 8 bits with a sign
    Q5_0    x = d (q - 16)          32 numbers, q of 4 bits and a fifth
    Q4_K    x = d s q - e m         256 numbers, q of 4 bits; s and m of 6 bits for each 32 numbers
    Q6_K    x = d s (q - 32)        256 numbers, q of 4 bits and two more; s of 8 bits for each 16 numbers

The order of the numbers in a block is that of llama.cpp's ggml-quants.c.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Blocks = NDArray[np.uint8]
"""The bytes of the blocks, (N, bytes)."""
Numbers = NDArray[np.float32]
"""The numbers of the blocks, (N, block)."""
BLOCKS_AT_ONCE = 1 << 15


@dataclass(frozen=True)
class Quantization:
    """A format with `bytes` for each `block` of numbers."""

    name: str
    block: int
    bytes: int
    numbers: Callable[[Blocks], Numbers]


def dequantize(quantization: Quantization, blocks: Blocks) -> Tensor:
    """Return the numbers of all blocks in float32, (N, block). Only some blocks are unpacked at a time."""
    numbers = np.empty((len(blocks), quantization.block), np.float32)
    for start in range(0, len(blocks), BLOCKS_AT_ONCE):
        part = slice(start, start + BLOCKS_AT_ONCE)
        numbers[part] = quantization.numbers(blocks[part])
    return torch.from_numpy(numbers)


def _plain(kind: str) -> Callable[[Blocks], Numbers]:
    return lambda blocks: np.ascontiguousarray(blocks).view(kind).astype(np.float32)


def _bfloat16(blocks: Blocks) -> Numbers:
    """Return the upper halves of float32."""
    return (_view(blocks, "<u2").astype(np.uint32) << 16).view(np.float32)


def _q8_0(blocks: Blocks) -> Numbers:
    return _scale(blocks[:, :2]) * _view(blocks[:, 2:], np.int8).astype(np.float32)


def _q5_0(blocks: Blocks) -> Numbers:
    fifth = np.unpackbits(blocks[:, 2:6], axis=1, bitorder="little")
    low = np.concatenate([blocks[:, 6:] & 15, blocks[:, 6:] >> 4], 1)
    return _scale(blocks[:, :2]) * ((low | fifth << 4).astype(np.float32) - 16)


def _q4_k(blocks: Blocks) -> Numbers:
    d, e, packed, pairs = blocks[:, :2], blocks[:, 2:4], blocks[:, 4:16], blocks[:, 16:].reshape(-1, 4, 32)
    q = np.stack([pairs & 15, pairs >> 4], 2).reshape(-1, 8, 32).astype(np.float32)
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    s = np.concatenate([first & 63, third & 15 | first >> 6 << 4], 1)
    m = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], 1)
    scales, least = _scale(d) * s.astype(np.float32), _scale(e) * m.astype(np.float32)
    return (scales[..., None] * q - least[..., None]).reshape(-1, 256)


def _q6_k(blocks: Blocks) -> Numbers:
    fours, twos = blocks[:, :128].reshape(-1, 2, 1, 64), blocks[:, 128:192].reshape(-1, 2, 1, 32)
    low = (fours >> np.array([0, 4], np.uint8)[:, None] & 15).reshape(-1, 2, 4, 32)
    high = twos >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    q = (low | high << 4).astype(np.float32).reshape(-1, 16, 16) - 32
    scales = _scale(blocks[:, 208:]) * _view(blocks[:, 192:208], np.int8).astype(np.float32)
    return (scales[..., None] * q).reshape(-1, 256)


def _scale(blocks: Blocks) -> Numbers:
    return _view(blocks, "<f2").astype(np.float32)


def _view(blocks: Blocks, kind: Any) -> NDArray[Any]:
    return np.ascontiguousarray(blocks).view(kind)


QUANTIZATIONS = {
    0: Quantization("F32", 1, 4, _plain("<f4")),
    1: Quantization("F16", 1, 2, _plain("<f2")),
    30: Quantization("BF16", 1, 2, _bfloat16),
    6: Quantization("Q5_0", 32, 22, _q5_0),
    8: Quantization("Q8_0", 32, 34, _q8_0),
    12: Quantization("Q4_K", 256, 144, _q4_k),
    14: Quantization("Q6_K", 256, 210, _q6_k),
}
"""The formats that are read, by their numbers in a file."""
