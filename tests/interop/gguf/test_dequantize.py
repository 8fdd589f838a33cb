"""Quantized blocks: each number is that of the formula, written out, and that of the package `gguf`."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from foveal.interop.gguf.dequantize import BLOCKS_AT_ONCE, QUANTIZATIONS, Quantization, dequantize

BY_NAME = {quantization.name: quantization for quantization in QUANTIZATIONS.values()}
NUMBERS = {quantization.name: number for number, quantization in QUANTIZATIONS.items()}


def random_blocks(quantization: Quantization, count: int) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (count, quantization.bytes), np.uint8)


def half(low: int, high: int) -> np.float32:
    return np.float32(np.array([low | high << 8], np.uint16).view(np.float16)[0])


def signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def plain_q8_0(block: list[int]) -> Iterator[np.float32]:
    for i in range(32):
        yield half(*block[:2]) * np.float32(signed(block[2 + i]))


def plain_q5_0(block: list[int]) -> Iterator[np.float32]:
    fifths = int.from_bytes(bytes(block[2:6]), "little")
    for i in range(32):
        low = block[6 + i % 16] >> 4 * (i // 16) & 15
        yield half(*block[:2]) * np.float32((low | (fifths >> i & 1) << 4) - 16)


def plain_q4_k(block: list[int]) -> Iterator[np.float32]:
    d, e, packed = half(*block[:2]), half(*block[2:4]), block[4:16]
    for i in range(256):
        part = i // 32
        if part < 4:
            s, m = packed[part] & 63, packed[part + 4] & 63
        else:
            s = packed[part + 4] & 15 | packed[part - 4] >> 6 << 4
            m = packed[part + 4] >> 4 | packed[part] >> 6 << 4
        q = block[16 + i // 64 * 32 + i % 32] >> 4 * (i // 32 % 2) & 15
        yield d * np.float32(s) * np.float32(q) - e * np.float32(m)


def plain_q6_k(block: list[int]) -> Iterator[np.float32]:
    for i in range(256):
        half_block, place = i // 128, i % 128
        row, column = place // 32, place % 32
        low = block[64 * half_block + column + 32 * (row % 2)] >> 4 * (row // 2) & 15
        high = block[128 + 32 * half_block + column] >> 2 * row & 3
        s = signed(block[192 + i // 16])
        yield half(*block[208:210]) * np.float32(s) * np.float32((low | high << 4) - 32)


PLAIN = {"Q8_0": plain_q8_0, "Q5_0": plain_q5_0, "Q4_K": plain_q4_k, "Q6_K": plain_q6_k}


@pytest.mark.parametrize("name", list(PLAIN))
def test_each_number_is_that_of_the_formula(name: str) -> None:
    blocks = random_blocks(BY_NAME[name], 40)
    blocks[:, [1, 3, -1]] &= 0b10111111  # scales that are finite
    with np.errstate(over="ignore"):
        plain = [[*PLAIN[name](block)] for block in blocks.tolist()]
    assert np.array_equal(dequantize(BY_NAME[name], blocks).numpy(), np.array(plain, np.float32))


@pytest.mark.parametrize(
    ("name", "dtype"), [("F32", torch.float32), ("F16", torch.float16), ("BF16", torch.bfloat16)]
)
def test_floats(name: str, dtype: torch.dtype) -> None:
    numbers = torch.tensor([0.0, -1.5, math.pi, 1e-3, 6e4]).to(dtype)
    content = numbers.view(torch.uint8).numpy().reshape(len(numbers), -1)
    assert torch.equal(dequantize(BY_NAME[name], content)[:, 0], numbers.float())


@pytest.mark.parametrize("name", list(BY_NAME))
def test_many_blocks_are_those_of_the_package(name: str) -> None:
    gguf = pytest.importorskip("gguf")
    blocks = random_blocks(BY_NAME[name], BLOCKS_AT_ONCE + 3)
    with np.errstate(all="ignore"):
        theirs = gguf.dequantize(blocks, gguf.GGMLQuantizationType(NUMBERS[name]))
        ours = dequantize(BY_NAME[name], blocks).numpy()
    assert np.array_equal(ours, theirs.reshape(ours.shape), equal_nan=True)
