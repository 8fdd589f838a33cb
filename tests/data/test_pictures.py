"""Pictures: every mode, turn and form gives pixels, or one reason; what is too large is not decoded."""

import io
import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest
from numpy.typing import NDArray

from foveal.data.pictures import FORMATS, Pixels, eight_bits, from_array, read_picture, stored

Image = pytest.importorskip("PIL.Image")

SIDE = 16


def scene(height: int = SIDE, width: int = SIDE) -> NDArray[np.uint8]:
    """(height, width, 3): levels that differ in both directions and all channels."""
    y, x = np.mgrid[:height, :width]
    colours = [y * 255 // max(1, height - 1), x * 255 // max(1, width - 1), (x + 2 * y) * 5 % 256]
    return np.stack(colours, 2).astype(np.uint8)


def written(image: object, form: str = "PNG", **settings: object) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **settings)
    return out.getvalue()


def pixels(content: bytes, size: int = SIDE, channels: int = 3) -> Pixels:
    found = read_picture(content, size, channels)
    assert isinstance(found, np.ndarray), found
    assert found.dtype == np.uint8
    assert found.shape[2] == channels
    assert min(found.shape[:2]) == min(max(min(found.shape[:2]), size), size * 8 // 7)
    return found


def refusal(content: bytes) -> str:
    found = read_picture(content, SIDE, 3)
    assert isinstance(found, str)
    assert found
    assert "\n" not in found
    return found


@pytest.mark.parametrize("form", FORMATS)
def test_forms_by_content(form):
    """A file of the size that is seen stays as it is, bit for bit, where its form loses nothing."""
    whole = scene()
    settings = {"JPEG": {"quality": 100, "subsampling": 0}, "WEBP": {"lossless": True}}.get(form, {})
    found = pixels(written(Image.fromarray(whole), form, **settings))
    error = {"JPEG": 8, "GIF": 40}.get(form, 0)
    assert np.abs(found.astype(int) - whole).max() <= error
    grey = np.abs(pixels(written(Image.fromarray(whole), form, **settings), channels=1)[..., 0] - luma(whole))
    assert grey.max() <= error + 1


def luma(image: NDArray[np.uint8]) -> NDArray[np.float64]:
    return image @ np.array([0.299, 0.587, 0.114])


def test_grey_becomes_colour_and_stays_grey():
    grey = scene()[..., 0]
    content = written(Image.fromarray(grey))
    assert (pixels(content) == grey[..., None]).all()
    assert (pixels(content, channels=1)[..., 0] == grey).all()


@pytest.mark.parametrize("mode", ["1", "L", "P", "CMYK", "YCbCr", "I;16", "I", "F"])
def test_modes_without_transparency(mode):
    """Each as near to the picture as its form allows."""
    whole = scene()
    image, expected, error = Image.fromarray(whole), whole, 0.0
    if mode in ("1", "L", "I;16", "I", "F"):
        grey = whole[..., 0]
        expected = np.repeat(grey[..., None], 3, 2)
        if mode == "1":
            image = Image.fromarray(grey > 99)
            expected = np.repeat(((grey > 99) * 255)[..., None], 3, 2)
        else:
            scaled = {"L": grey, "I;16": grey.astype(np.uint16) * 257, "I": grey.astype(np.int32) * 257}
            image = Image.fromarray(scaled.get(mode, grey.astype(np.float32) / 255))
    else:
        image = image.quantize(256) if mode == "P" else image.convert(mode)
        error = {"P": 40.0, "YCbCr": 3.0}.get(mode, 0.0)
    assert image.mode == mode
    found = pixels(written(image, "TIFF"))
    assert np.abs(found.astype(float) - expected).max() <= error


@pytest.mark.parametrize("mode", ["LA", "RGBA", "PA", "P", "L", "RGB", "1"])
def test_what_is_transparent_is_white(mode):
    """Above a black left half, the right half is transparent, whatever colour it hides."""
    alpha = np.repeat(np.repeat([[255, 0]], SIDE // 2, 1), SIDE, 0).astype(np.uint8)
    expected = 255 - alpha
    if mode in ("LA", "RGBA"):
        hidden = Image.fromarray(np.zeros((SIDE, SIDE), np.uint8)).convert("L" if mode == "LA" else "RGB")
        hidden.putalpha(Image.fromarray(alpha))
        content = written(hidden)
    elif mode == "PA":
        image = Image.fromarray(np.zeros((SIDE, SIDE, 3), np.uint8)).convert("P").convert("PA")
        image.putalpha(Image.fromarray(alpha))
        content = written(image, "TIFF" if image.mode == "PA" else "PNG")
    else:
        hides = 255 if mode == "1" else 9
        levels = Image.fromarray(np.where(alpha, 0, hides).astype(np.uint8)).convert(mode)
        if mode == "P":
            levels = Image.fromarray(np.where(alpha, 0, 1).astype(np.uint8))
            levels.putpalette([0, 0, 0, 9, 9, 9])
        key = {"P": 1, "L": 9, "RGB": (9, 9, 9), "1": 255}[mode]
        content = written(levels, transparency=key)
    assert (pixels(content) == expected[..., None]).all()


def test_half_transparent_edges_do_not_darken_when_resized():
    """What a transparent pixel hides has no weight."""
    hidden = np.zeros((64, 64, 4), np.uint8)
    hidden[:, ::2] = 255
    assert pixels(written(Image.fromarray(hidden))).min() >= 254


@pytest.mark.parametrize("form", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("turn", range(1, 9))
def test_turned_pictures_stand_upright(form, turn):
    """What a camera stored turned by each of the eight ways is equal to what it saw."""
    upright = scene(SIDE, SIDE)
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
    settings = {"JPEG": {"quality": 100, "subsampling": 0}, "WEBP": {"lossless": True}}.get(form, {})
    content = written(Image.fromarray(np.ascontiguousarray(lies(upright))), form, exif=exif, **settings)
    error = 8 if form == "JPEG" else 0
    assert np.abs(pixels(content).astype(int) - upright).max() <= error


def test_damaged_exif_does_no_harm():
    content = written(
        Image.fromarray(scene()), "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff" + b"\xff" * 40
    )
    pixels(content)


def test_of_an_animation_the_first_picture():
    first, second = Image.fromarray(scene()), Image.fromarray(255 - scene())
    for form, error in (("GIF", 40), ("WEBP", 0), ("PNG", 0), ("TIFF", 0)):
        settings = {"lossless": True} if form == "WEBP" else {}
        content = written(first, form, save_all=True, append_images=[second], **settings)
        assert np.abs(pixels(content).astype(int) - scene()).max() <= error


@pytest.mark.parametrize(
    ("shape", "size", "expected"),
    [
        ((16, 16), 16, (16, 16)),
        ((17, 40), 16, (17, 40)),  # within the margin: as it is
        ((18, 18), 16, (18, 18)),
        ((36, 36), 16, (18, 18)),
        ((90, 45), 16, (36, 18)),
        ((8, 12), 16, (16, 24)),
        ((1, 1), 16, (16, 16)),
        ((1, 4000), 16, (16, 48)),
        ((4000, 2), 16, (48, 16)),
        ((3000, 20), 16, (54, 18)),
    ],
)
def test_sizes(shape, size, expected):
    """No side is below the size that is seen; pictures are not kept larger, or longer, than is needed."""
    assert pixels(written(Image.fromarray(scene(*shape))), size).shape == (*expected, 3)
    assert stored(min(shape), size) == min(expected)


@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_large_ones_become_means(form):
    """Shrunk with the frequencies cut off that a small picture can't hold: stripes become grey."""
    stripes = np.zeros((288, 288, 3), np.uint8)
    stripes[:, ::2] = 255
    found = pixels(written(Image.fromarray(stripes), form)).astype(int)
    assert np.abs(found - 127).max() <= 8
    smooth = scene(288, 288)[..., :2]
    smooth = np.concatenate([smooth, smooth[..., :1]], 2)
    expected = smooth.reshape(18, 16, 18, 16, 3).mean((1, 3))
    assert np.abs(pixels(written(Image.fromarray(smooth), form)) - expected).max() <= 8


@pytest.mark.parametrize("form", FORMATS)
def test_cut_off_files_give_a_picture_or_a_reason(form):
    content = written(Image.fromarray(scene(40, 40)), form)
    for twentieth in range(20):
        found = read_picture(content[: len(content) * twentieth // 20], SIDE, 3)
        assert isinstance(found, str) or found.shape == (18, 18, 3)
    assert isinstance(read_picture(content[: len(content) // 2], SIDE, 3), str)
    assert refusal(b"") == "empty; get the file anew"


def test_other_bytes_give_a_reason():
    draw = random.Random(0)
    whole = {form: written(Image.fromarray(scene(40, 40)), form) for form in FORMATS}
    for content in whole.values():
        for _ in range(20):
            start, some = draw.randrange(len(content)), draw.randbytes(draw.randrange(1, 9))
            found = read_picture(content[:start] + some + content[start + len(some) :], SIDE, 3)
            assert isinstance(found, str | np.ndarray)
            refusal(content[:4] + draw.randbytes(200))
    for content in (b"hello\n", bytes(999), draw.randbytes(999), b"%PDF-1.7\n", b"<svg></svg>"):
        assert "no picture that can be read" in refusal(content)


@pytest.mark.parametrize("form", ["ICO", "TGA", "PCX", "SGI", "JPEG2000"])
def test_other_forms_are_not_opened(form):
    assert "no picture that can be read" in refusal(written(Image.fromarray(scene(32, 32)), form))


def png(width: int, height: int, depth: int, colour: int, *more: tuple[bytes, bytes]) -> bytes:
    """A PNG of zeros, which hardly takes a byte."""
    bits = {0: 1, 2: 3, 3: 1, 6: 4}[colour] * depth
    rows = zlib.compressobj(1)
    row = bytes(1 + (width * bits + 7) // 8)
    data = b"".join(rows.compress(row * 64) for _ in range(-(-min(height, 2048) // 64))) + rows.flush()
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)), *more]
    if colour == 3:
        chunks.append((b"PLTE", bytes(6)))
    chunks += [(b"IDAT", data), (b"IEND", b"")]
    packed = (struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


GIF_FRAME = b"," + struct.pack("<HHHHB", 0, 0, 9_999, 9_999, 0) + b"\x02\x02\x44\x01\0;"


def tiff(side: int, tile: int) -> bytes:
    """A TIFF of one packed tile of zeros."""
    data = zlib.compress(bytes(tile * tile), 1)
    settings = {256: side, 257: side, 258: 8, 259: 8, 262: 1, 277: 1, 322: tile, 323: tile}
    settings |= {324: 14 + 12 * 10, 325: len(data)}
    tags = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in settings.items())
    return b"II*\0" + struct.pack("<IH", 8, 10) + tags + bytes(4) + data


BOMBS = {
    "many": lambda: png(20_000, 20_000, 8, 2),
    "more than Pillow warns of": lambda: png(10_000, 9_000, 1, 0),
    "colours": lambda: png(6_000, 6_000, 8, 2),
    "transparent": lambda: png(4_000, 4_000, 8, 6),
    "palette": lambda: png(5_000, 5_000, 8, 3),
    "16 bits": lambda: png(5_000, 5_000, 16, 0),
    "progressive": lambda: written(Image.new("L", (5_000, 5_000)), "JPEG", progressive=True),
    "webp": lambda: written(Image.new("L", (3_000, 3_000)), "WEBP", lossless=True),
    "tiff": lambda: tiff(100, 8_000),
    "gif": lambda: b"GIF89a" + struct.pack("<HHBBB", 9_999, 9_999, 0x80, 0, 0) + bytes(6) + GIF_FRAME,
    "bmp": lambda: b"BM" + struct.pack("<IIIIiiHHIIIIII", 99, 0, 54, 40, 50_000, 50_000, 1, 24, *[0] * 6),
    "ppm": lambda: b"P6 50000 50000 255\n",
}


LARGEST = {
    "RGB": lambda: png(5_400, 5_400, 8, 2),
    "RGBA": lambda: png(3_800, 3_800, 8, 6),
    "P": lambda: png(3_800, 3_800, 8, 3),
    "L": lambda: png(9_400, 9_400, 8, 0),
    "I;16": lambda: png(3_800, 3_800, 16, 0),
    "webp": lambda: written(Image.new("RGBA", (2_840, 2_840)), "WEBP", lossless=True),
    "progressive": lambda: written(Image.new("RGB", (4_700, 4_700)), "JPEG", progressive=True, subsampling=0),
}
"""What is just small enough."""
MEASURE = """
import sys
from pathlib import Path
from PIL import Image
from foveal.data.pictures import read_picture

Image.init()
def most():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
content, before = Path(sys.argv[1]).read_bytes(), most()
found = read_picture(content, 32, 3)
print(most() - before, found if isinstance(found, str) else "read")
"""


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_before_they_are_decoded(name):
    content = BOMBS[name]()
    assert len(content) < 1_000_000
    start = perf_counter()
    assert "too many pixels" in refusal(content) or "pixels are too many" in refusal(content)
    assert perf_counter() - start < 1


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured on Linux")
@pytest.mark.parametrize("name", [*LARGEST, "webp bomb", "tiff bomb", "progressive bomb"])
def test_memory_is_bounded(name, tmp_path):
    made = BOMBS[name.removesuffix(" bomb")] if "bomb" in name else LARGEST[name]
    (tmp_path / "a").write_bytes(made())
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    kibibytes, told = done.stdout.split(maxsplit=1)
    assert int(kibibytes) < (10 if "bomb" in name else 150) * 1024
    assert ("too many" in told) == ("bomb" in name)


def test_a_tile_may_be_larger_than_the_picture():
    assert pixels(tiff(SIDE, 32)).shape == (SIDE, SIDE, 3)


def test_a_large_photograph_is_read_smaller():
    """As a JPEG: it is never decoded as a whole."""
    large = Image.new("RGB", (9_000, 9_000), (200, 100, 50))
    found = pixels(written(large, "JPEG"))
    assert found.shape == (18, 18, 3)
    assert np.abs(found - np.array([200, 100, 50])).max() <= 3


def test_arrays():
    whole = scene(20, 30)
    for values in (
        whole,
        whole[..., :1],
        whole[..., 0],
        np.dstack([whole, np.full((20, 30), 255, np.uint8)]),
    ):
        for channels in (1, 3):
            found = from_array(values, SIDE, channels)
            assert isinstance(found, np.ndarray)
            assert (found == pixels(written(Image.fromarray(values.squeeze())), channels=channels)).all()
    for shape in ((4,), (4, 4, 2), (4, 4, 5), (0, 4), (2, 4, 4, 3)):
        assert "channels is needed" in str(from_array(np.zeros(shape, np.uint8), SIDE, 3))


def test_levels():
    levels = np.array([[0, 1, 254, 255]], np.uint8)
    for values in (levels, levels / 255, levels.astype(float), levels * np.uint16(257), levels * 257.0):
        assert (eight_bits(values) == levels).all()
    for values in ([[-1, 2]], [[0, 70_000]], [[np.nan, 1.0]], [[np.inf, 1.0]]):
        assert "save it with 8 or 16 bits" in str(eight_bits(np.array(values)))
    assert "save it with 8 bits" in str(eight_bits(np.array([["a"]])))
