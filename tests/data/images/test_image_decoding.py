"""Pictures: every mode, turn and form gives pixels, or one reason; what is too large is not decoded."""

import random
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from foveal.data.images import image_decoding
from foveal.data.images.image_decoding import (
    IMAGE_FORMATS,
    decode_image,
    image_from_array,
    stored_short_side,
    upscale,
    upscaled_shape,
)
from foveal.data.images.image_files import load_image
from foveal.data.images.pixel_levels import Pixels
from tests.support.image_bytes import SIDE, TiffTags, encode_image, gradient_image, luma, tiff

LOSSLESS: dict[str, dict[str, Any]] = {"JPEG": {"quality": 100, "subsampling": 0}, "WEBP": {"lossless": True}}
"""The settings with which a form loses least."""


def pixels(content: bytes, size: int = SIDE, channels: int = 3) -> Pixels:
    picture = decode_image(content, size, channels)
    assert not isinstance(picture, str), picture
    found = picture.pixels
    assert found.dtype == np.uint8
    assert found.shape[2] == channels
    assert min(found.shape[:2]) <= size * 8 // 7
    return found


def refusal(content: bytes) -> str:
    found = decode_image(content, SIDE, 3)
    assert isinstance(found, str)
    assert found
    assert "\n" not in found
    return found


@pytest.mark.parametrize("form", IMAGE_FORMATS)
def test_forms_by_content(form):
    """A file of the size that is seen stays as it is, bit for bit, where its form loses nothing."""
    whole = gradient_image()
    settings: dict[str, Any] = LOSSLESS.get(form, {})
    found = pixels(encode_image(Image.fromarray(whole), form, **settings))
    error = {"JPEG": 8, "GIF": 40}.get(form, 0)
    assert np.abs(found.astype(int) - whole).max() <= error
    grey = np.abs(
        pixels(encode_image(Image.fromarray(whole), form, **settings), channels=1)[..., 0] - luma(whole)
    )
    assert grey.max() <= error + 1


def test_grey_becomes_colour_and_stays_grey():
    grey = gradient_image()[..., 0]
    content = encode_image(Image.fromarray(grey))
    assert (pixels(content) == grey[..., None]).all()
    assert (pixels(content, channels=1)[..., 0] == grey).all()


@pytest.mark.parametrize("mode", ["1", "L", "P", "CMYK", "YCbCr", "I;16", "I", "F"])
def test_modes_without_transparency(mode):
    """Each as near to the picture as its form allows."""
    whole = gradient_image()
    image, expected, error = Image.fromarray(whole), whole, 0.0
    if mode in ("1", "L", "I;16", "I", "F"):
        grey = whole[..., 0]
        expected = np.repeat(grey[..., None], 3, 2)
        if mode == "1":
            image = Image.fromarray(grey > 99)
            expected = np.repeat(((grey > 99) * 255)[..., None], 3, 2)
        else:
            scaled: dict[str, Any] = {
                "L": grey,
                "I;16": grey.astype(np.uint16) * 257,
                "I": grey.astype(np.int32) * 257,
            }
            image = Image.fromarray(scaled.get(mode, grey.astype(np.float32) / 255))
    else:
        image = image.quantize(256) if mode == "P" else image.convert(mode)
        error = {"P": 40.0, "YCbCr": 3.0}.get(mode, 0.0)
    assert image.mode == mode
    found = pixels(encode_image(image, "TIFF"))
    assert np.abs(found.astype(float) - expected).max() <= error


@pytest.mark.parametrize("mode", ["LA", "RGBA", "PA", "P", "L", "RGB", "1"])
def test_what_is_transparent_is_white(mode):
    """Above a black left half, the right half is transparent, whatever colour it hides."""
    alpha = np.repeat(np.repeat([[255, 0]], SIDE // 2, 1), SIDE, 0).astype(np.uint8)
    expected = 255 - alpha
    if mode in ("LA", "RGBA"):
        hidden = Image.fromarray(np.zeros((SIDE, SIDE), np.uint8)).convert("L" if mode == "LA" else "RGB")
        hidden.putalpha(Image.fromarray(alpha))
        content = encode_image(hidden)
    elif mode == "PA":
        image = Image.fromarray(np.zeros((SIDE, SIDE, 3), np.uint8)).convert("P").convert("PA")
        image.putalpha(Image.fromarray(alpha))
        content = encode_image(image, "TIFF" if image.mode == "PA" else "PNG")
    else:
        hides = 255 if mode == "1" else 9
        levels = Image.fromarray(np.where(alpha, 0, hides).astype(np.uint8)).convert(mode)
        if mode == "P":
            levels = Image.fromarray(np.where(alpha, 0, 1).astype(np.uint8))
            levels.putpalette([0, 0, 0, 9, 9, 9])
        key = {"P": 1, "L": 9, "RGB": (9, 9, 9), "1": 255}[mode]
        content = encode_image(levels, transparency=key)
    assert (pixels(content) == expected[..., None]).all()


def test_half_transparent_edges_do_not_darken_when_resized():
    """What a transparent pixel hides has no weight."""
    hidden = np.zeros((64, 64, 4), np.uint8)
    hidden[:, ::2] = 255
    assert pixels(encode_image(Image.fromarray(hidden))).min() >= 254


@pytest.mark.parametrize("form", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("turn", range(1, 9))
def test_turned_pictures_stand_upright(form, turn):
    """What a camera stored turned by each of the eight ways is equal to what it saw."""
    upright = gradient_image(SIDE, SIDE)
    # How the picture lies in the file: the meaning of EXIF's orientation, axis by axis.
    lies = {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.swapaxes(0, 1),
        6: lambda a: a.swapaxes(0, 1)[::-1],
        7: lambda a: a.swapaxes(0, 1)[::-1, ::-1],
        8: lambda a: a.swapaxes(0, 1)[:, ::-1],
    }[turn]
    exif = Image.Exif()
    exif[0x0112] = turn
    settings: dict[str, Any] = LOSSLESS.get(form, {})
    content = encode_image(Image.fromarray(np.ascontiguousarray(lies(upright))), form, exif=exif, **settings)
    error = 8 if form == "JPEG" else 0
    assert np.abs(pixels(content).astype(int) - upright).max() <= error


def test_of_an_animation_the_first_picture():
    first, second = Image.fromarray(gradient_image()), Image.fromarray(255 - gradient_image())
    for form, error in (("GIF", 40), ("WEBP", 0), ("PNG", 0), ("TIFF", 0)):
        settings = {"lossless": True} if form == "WEBP" else {}
        content = encode_image(first, form, save_all=True, append_images=[second], **settings)
        assert np.abs(pixels(content).astype(int) - gradient_image()).max() <= error


@pytest.mark.parametrize(
    ("shape", "kept", "seen"),
    [
        ((16, 16), (16, 16), (16, 16)),
        ((17, 40), (17, 40), (17, 40)),  # within the margin: as it is
        ((18, 18), (18, 18), (18, 18)),
        ((36, 36), (18, 18), (18, 18)),
        ((90, 45), (36, 18), (36, 18)),
        ((8, 12), (8, 12), (16, 24)),
        ((1, 1), (1, 1), (16, 16)),
        ((1, 4000), (1, 3), (16, 48)),
        ((4000, 2), (6, 2), (48, 16)),
        ((3000, 20), (54, 18), (54, 18)),
    ],
)
def test_sizes(shape, kept, seen):
    """Stored images are no larger than needed, small images keep their size, and no side is below the model's
    size."""
    found = pixels(encode_image(Image.fromarray(gradient_image(*shape))), 16)
    assert found.shape == (*kept, 3)
    assert stored_short_side(min(shape), 16) == min(kept)
    assert upscale(found, 16).shape == (*seen, 3)
    assert upscale(found[..., :1], 16).shape == (*seen, 1)
    assert upscaled_shape(kept[0], kept[1], 16) == seen


def test_enlarged_pictures_are_those_of_pillow():
    small = gradient_image(8, 12)
    large = Image.fromarray(small).resize((24, 16), Image.Resampling.BILINEAR)
    assert np.array_equal(upscale(small, 16), np.asarray(large))
    assert upscale(small, 16).flags.writeable
    assert upscale(small, 8) is small


@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_large_ones_become_means(form):
    """Shrunk with the frequencies cut off that a small picture can't hold: stripes become grey."""
    stripes = np.zeros((288, 288, 3), np.uint8)
    stripes[:, ::2] = 255
    found = pixels(encode_image(Image.fromarray(stripes), form)).astype(int)
    assert np.abs(found - 127).max() <= 8
    smooth = gradient_image(288, 288)[..., :2]
    smooth = np.concatenate([smooth, smooth[..., :1]], 2)
    expected = smooth.reshape(18, 16, 18, 16, 3).mean((1, 3))
    assert np.abs(pixels(encode_image(Image.fromarray(smooth), form)) - expected).max() <= 8


def test_other_bytes_give_a_reason():
    assert refusal(b"") == "empty; get the file again"
    draw = random.Random(0)
    whole = {form: encode_image(Image.fromarray(gradient_image(40, 40)), form) for form in IMAGE_FORMATS}
    for content in whole.values():
        for _ in range(20):
            start, some = draw.randrange(len(content)), draw.randbytes(draw.randrange(1, 9))
            found = decode_image(content[:start] + some + content[start + len(some) :], SIDE, 3)
            assert isinstance(found, str) or found.pixels.dtype == np.uint8
            refusal(content[:4] + draw.randbytes(200))
    for content in (b"hello\n", bytes(999), draw.randbytes(999), b"%PDF-1.7\n", b"<svg></svg>"):
        assert "not an image that can be read" in refusal(content)


@pytest.mark.parametrize("form", ["ICO", "TGA", "PCX", "SGI", "JPEG2000"])
def test_other_forms_are_not_opened(form):
    assert "not an image that can be read" in refusal(
        encode_image(Image.fromarray(gradient_image(32, 32)), form)
    )


def test_a_tile_may_be_larger_than_the_picture():
    data = zlib.compress(bytes(32 * 32))
    tags: TiffTags = {256: SIDE, 257: SIDE, 258: 8, 259: 8, 262: 1, 277: 1, 322: 32, 323: 32, 324: [8]}
    assert pixels(tiff({**tags, 325: [len(data)]}, data)).shape == (SIDE, SIDE, 3)


def test_a_large_photograph_is_read_smaller():
    """As a JPEG: it is never decoded as a whole."""
    large = Image.new("RGB", (9_000, 9_000), (200, 100, 50))
    found = pixels(encode_image(large, "JPEG"))
    assert found.shape == (18, 18, 3)
    assert np.abs(found - np.array([200, 100, 50])).max() <= 3


def test_arrays():
    whole = gradient_image(20, 30)
    for values in (
        whole,
        whole[..., :1],
        whole[..., 0],
        np.dstack([whole, np.full((20, 30), 255, np.uint8)]),
    ):
        for channels in (1, 3):
            found = image_from_array(values, SIDE, channels)
            assert not isinstance(found, str)
            shown = pixels(encode_image(Image.fromarray(values.squeeze())), channels=channels)
            assert (found.pixels == shown).all()
    for shape in ((4,), (4, 4, 2), (4, 4, 5), (0, 4), (2, 4, 4, 3)):
        assert "channels is needed" in str(image_from_array(np.zeros(shape, np.uint8), SIDE, 3))


@pytest.mark.parametrize("form", IMAGE_FORMATS)
@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_the_same_picture_at_any_size(form: str, mode: str) -> None:
    """What tells it from others depends neither on how large it is needed nor in how many channels."""
    picture = Image.fromarray(gradient_image(60, 200)).convert(mode)
    if form in ("JPEG", "PPM", "BMP") and mode == "RGBA":
        picture = picture.convert("RGB")
    content = encode_image(picture, form)
    contents = set()
    for size in (8, 16, 30, 60, 224):
        for channels in (1, 3):
            found = decode_image(content, size, channels)
            assert not isinstance(found, str)
            contents.add(found.content)
    assert len(contents) == 1
    other = picture.copy()
    other.putpixel((199, 59), 0)
    changed = decode_image(encode_image(other, form), 8, 1)
    assert not isinstance(changed, str)
    assert changed.content not in contents


def test_the_same_pixels_in_other_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that keep them exactly, arrays, and parts that are looked at one after the other."""
    levels = gradient_image(60, 200)
    plain, opaque = Image.fromarray(levels), Image.fromarray(levels).convert("RGBA")
    found = [decode_image(encode_image(plain, form), 30, 3) for form in ("PNG", "BMP", "TIFF")]
    found += [decode_image(encode_image(opaque), 30, 3), image_from_array(levels, 30, 3)]
    monkeypatch.setattr(image_decoding, "HASHED_PIXELS", 700)
    found += [image_from_array(levels, 30, 3)]
    contents = [one.content for one in found if not isinstance(one, str)]
    assert len(contents) == len(found)
    assert len({*contents}) == 1
    grey = levels[:SIDE, :SIDE, 0]
    again, read = image_from_array(grey, SIDE, 1), decode_image(encode_image(Image.fromarray(grey)), SIDE, 1)
    assert not isinstance(again, str)
    assert not isinstance(read, str)
    assert again.content == read.content
    assert (again.pixels == read.pixels).all()


def test_a_folder_is_no_picture(tmp_path: Path) -> None:
    assert load_image(tmp_path, SIDE, 3) == "a folder, not an image; name an image in it"
