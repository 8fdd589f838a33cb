"""Levels of 8 bits from numbers of other kinds: a picture is as dark as it was, whatever holds it."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from foveal.core.errors import UserError
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.files.data_part import open_part
from foveal.data.images.image_decoding import decode_image
from foveal.data.images.image_files import unlabeled_images
from foveal.data.images.pixel_levels import Pixels, to_uint8, white_level
from foveal.data.video.clip_files import unlabeled_clips
from foveal.data.video.clip_loading import load_clip
from tests.support.image_bytes import SIDE, encode_image

LEVELS = np.array([[0, 1, 254, 255]], np.uint8)
DARK = np.arange(SIDE * SIDE).reshape(SIDE, SIDE) % 256
"""Whole numbers that 8 bits would hold."""


def test_each_kind_of_numbers() -> None:
    for values in (LEVELS, LEVELS / 255, LEVELS.astype(float), LEVELS * np.uint16(257), LEVELS * 257.0):
        assert np.array_equal(to_uint8(values), LEVELS)
    for refused in ([[-1, 2]], [[0, 70_000]], [[np.nan, 1.0]], [[np.inf, 1.0]]):
        assert "save it with 8 or 16 bits" in str(to_uint8(np.array(refused)))
    assert "save it with 8 bits" in str(to_uint8(np.array([["a"]])))


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_whole_numbers_that_8_bits_hold_stay(kind: type) -> None:
    levels = LEVELS // 2 if kind == np.int8 else LEVELS
    found = to_uint8(levels.astype(kind))
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.uint8
    assert (found == levels).all()
    if np.iinfo(kind).max > 65_535:
        assert np.array_equal(to_uint8(levels.astype(kind) * kind(257)), levels)


def test_a_dark_picture_is_one_of_its_set() -> None:
    """White is said by the brightest of those that can be used."""
    sets: list[tuple[Any, int]] = [
        ([0.0, 0.4, 1.0], 1),
        ([0.0, 0.4, 200.0], 255),
        ([1.0, 300.0, np.nan], 65_535),
        ([1.0, np.nan, -1.0, np.inf, 70_000.0], 1),
        ([np.nan], 1),
        ([0, 1], 255),
        ([7, 255, -1, 70_000], 255),
        ([7, 256], 65_535),
    ]
    for values, white in sets:
        pictures = np.array(values)[:, None, None].repeat(2, 2)
        assert white_level([pictures]) == white_level(pictures[:, None]) == white
    assert white_level([LEVELS[None]]) == white_level([np.array([["a"]])]) == 255
    assert white_level([np.zeros((0, 4, 4))]) == white_level([]) == 1
    assert np.array_equal(to_uint8(np.array([[0.4, 1.0]]), 255), [[0, 1]])
    assert np.array_equal(to_uint8(np.array([[200, 255]]), 65_535), [[0, 0]])


@pytest.mark.parametrize("high", [1.02, 1.5, 2.0, 4.0])
@pytest.mark.parametrize("low", [-1.0, 0.0])
def test_floats_of_an_unknown_scale_are_refused_with_how_to_scale_them(
    low: float, high: float, tmp_path: Path
) -> None:
    """Taken as 0 to 255 they would be black. Rounding beyond 1, as of resized images, is no other scale."""
    values = np.linspace(low, high, SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)
    refused = to_uint8(values)
    assert isinstance(refused, str)
    assert "to 1 (from -1 to 1: (x + 1) / 2)" in refused
    assert f"go from {low:g} to {high:g}" in refused
    content = encode_image(Image.fromarray(values), "TIFF")
    assert decode_image(content, SIDE, 1) == refused
    np.savez(tmp_path / "a.npz", images=values[None])
    np.savez(tmp_path / "b.npz", clips=values[None, None].repeat(2, 1))
    for name, read in (("a.npz", unlabeled_images), ("b.npz", unlabeled_clips)):
        with pytest.raises(UserError, match="scale all images alike to 0 to 1"):
            load_all([*read(open_part(str(tmp_path / name)))])
    assert isinstance(to_uint8(np.clip(values, 0, 1.000001)), np.ndarray)


def load_all(rows: list[Row | SkippedRow]) -> None:
    """Decode the clips of rows.

    Raises: UserError: a clip can't be used.
    """
    for row in rows:
        clip = load_clip(row.fields["frames"], SIDE, 1, 9) if isinstance(row, Row) else row.reason
        if isinstance(clip, str):
            raise UserError(clip)


def of_file(content: bytes) -> Pixels:
    found = decode_image(content, SIDE, 1)
    assert not isinstance(found, str), found
    return found.pixels[..., 0]


def pgm(levels: NDArray[Any]) -> bytes:
    return f"P5 {SIDE} {SIDE} 65535\n".encode() + levels.astype(">u2").tobytes()


@pytest.mark.parametrize("form", ["PNG", "TIFF", "PPM"])
def test_a_dark_picture_of_16_bits_is_dark(form: str) -> None:
    content = pgm(DARK) if form == "PPM" else encode_image(Image.fromarray(DARK.astype(np.uint16)), form)
    with Image.open(io.BytesIO(content)) as image:
        assert image.mode.startswith("I")
    assert (of_file(content) == 0).all()
    bright = DARK * 257
    content = pgm(bright) if form == "PPM" else encode_image(Image.fromarray(bright.astype(np.uint16)), form)
    assert (of_file(content) == DARK).all()


def test_a_tiff_of_32_bits_may_hold_8() -> None:
    for levels in (DARK, DARK * 257):
        content = encode_image(Image.fromarray(levels.astype(np.int32)), "TIFF")
        with Image.open(io.BytesIO(content)) as image:
            assert image.mode == "I"
        assert (of_file(content) == DARK).all()
