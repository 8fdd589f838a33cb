"""Unusual images of every kind: modes, compressions, orientations, sizes, animations, metadata, damages."""

import io
import random
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from foveal.data.images.image_decoding import IMAGE_FORMATS
from tests.support.image_bytes import (
    CHANNELS,
    compressed_zeros,
    encode_image,
    gradient_image,
    jpeg_segment,
    luma,
    png_chunk,
    tiff,
)

SIDE = 36
SUFFIX = {
    "JPEG": "jpg",
    "TIFF": "tif",
    **{form: form.lower() for form in ("PNG", "GIF", "BMP", "WEBP", "PPM")},
}
MODES = (
    "1",
    "L",
    "LA",
    "P",
    "PA",
    "RGB",
    "RGBA",
    "RGBa",
    "RGBX",
    "CMYK",
    "YCbCr",
    "LAB",
    "HSV",
    "I",
    "I;16",
    "I;16B",
    "F",
)
FAX, JPEG_MODES = ("group3", "group4"), ("L", "RGB", "CMYK")
"""What libtiff packs of one mode alone; of others it complains on standard error."""
PACKINGS: dict[str, list[dict[str, Any]]] = {
    "TIFF": [{"compression": f"tiff_{name}"} for name in ("lzw", "adobe_deflate")]
    + [{"compression": name} for name in ("packbits", "lzma", "zstd", "jpeg", *FAX)],
    "JPEG": [{"progressive": True}, {"optimize": True}, {"subsampling": 0}, {"restart_marker_blocks": 1}],
    "GIF": [{"interlace": 0}],
    "WEBP": [{"lossless": True}],
}
TURNS = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: a.swapaxes(0, 1)[::-1],
    7: lambda a: a.swapaxes(0, 1)[::-1, ::-1],
    8: lambda a: a.swapaxes(0, 1)[:, ::-1],
}
"""How a picture lies in its file: the meaning of EXIF's orientation, axis by axis."""
TALL, PLAIN = gradient_image(2 * SIDE, SIDE), (9, 99, 199)
ANIMATED = {"PNG": "PNG", "GIF": "GIF", "WEBP": "WEBP", "TIFF": "TIFF", "JPEG": "MPO"}
"""Of a form what it is called when there are several pictures in a file."""
Shown = NDArray[np.uint8]


def readable_variants() -> Iterator[tuple[str, bytes, Shown]]:
    """Yield names, files, and the images (H, W, 3) that the files show."""
    yield from _in_modes()
    yield from _turned()
    for form in IMAGE_FORMATS:
        content, other = encode_image(TALL, form), Image.fromarray(255 - TALL)
        yield f"behind it.{SUFFIX[form]}", content + b"\xff\xda" * 99, TALL
        for suffix in SUFFIX.values():
            yield f"{form} as.{suffix}", content, TALL
        if form in ANIMATED:
            content = encode_image(TALL, ANIMATED[form], save_all=True, append_images=[other, other])
            yield f"animated.{SUFFIX[form]}", content, TALL
        for height, width in ((1, 1), (1, 65_500), (65_500, 1), (3, 2)):
            if content := _tried(Image.new("RGB", (width, height), PLAIN), form, {}):
                yield f"{height} x {width}.{SUFFIX[form]}", content, np.full((1, 1, 3), PLAIN, np.uint8)
    yield from _by_hand()


def damaged_variants() -> Iterator[tuple[str, bytes, bytes]]:
    """Yield names, damaged files, and the files before the damage."""
    draw = random.Random(0)
    packed = [("TIFF", settings) for settings in PACKINGS["TIFF"][:2]]
    for form, settings in [*((form, {}) for form in IMAGE_FORMATS), *packed]:
        content = encode_image(gradient_image(SIDE, SIDE), form, **settings)
        suffix = "-".join(["", *settings.values()]) + "." + SUFFIX[form]
        for percent in range(100):
            yield f"cut at {percent}{suffix}", content[: len(content) * percent // 100], content
        for number in range(20):
            start, some = draw.randrange(len(content)), draw.randbytes(draw.randrange(1, 9))
            yield f"changed {number}{suffix}", content[:start] + some + content[start + len(some) :], content
        yield f"name alone{suffix}", b"no picture\n" * 9, content
        yield f"zeros{suffix}", bytes(999), content


def _in_modes() -> Iterator[tuple[str, bytes, Shown]]:
    only = {"jpeg": JPEG_MODES, **dict.fromkeys(FAX, "1")}
    for mode in MODES:
        for form in IMAGE_FORMATS:
            if mode[0] == "I" and form in ("GIF", "WEBP"):
                continue  # Pillow writes the wrong 8 bits of it
            for number, settings in enumerate([{}, *PACKINGS.get(form, [])]):
                if mode not in only.get(str(settings.get("compression")), MODES):
                    continue
                if content := _tried(_in_mode(mode), form, settings):
                    yield f"{mode}-{number}.{SUFFIX[form]}", content, gradient_image(SIDE, SIDE)


def _turned() -> Iterator[tuple[str, bytes, Shown]]:
    for form in ("JPEG", "PNG", "WEBP", "TIFF"):
        for turn, lies in TURNS.items():
            exif = Image.Exif()
            exif[0x0112] = turn
            content = encode_image(np.ascontiguousarray(lies(TALL)), form, exif=exif)
            yield f"turn {turn}.{SUFFIX[form]}", content, TALL
        for name, broken in _broken_exif() if form != "TIFF" else ():
            yield f"EXIF {name}.{SUFFIX[form]}", encode_image(TALL, form, exif=broken), TALL


def _tried(image: Image.Image, form: str, settings: dict[str, object]) -> bytes:
    """Return the encoded image, or nothing if this Pillow can't write the format, or soon will not."""
    try:
        return encode_image(image, form, **settings)
    except (OSError, KeyError, ValueError, RuntimeError, struct.error, DeprecationWarning):
        return b""


def _in_mode(mode: str) -> Image.Image:
    whole = Image.fromarray(gradient_image(SIDE, SIDE))
    if mode.startswith("I"):
        grey = np.asarray(whole.convert("L"))
        levels = grey.astype(np.int32 if mode == "I" else ">u2" if mode == "I;16B" else np.uint16) * 257
        return Image.fromarray(levels.astype(">u2") if mode == "I;16B" else levels)
    between = {"PA": "P", "RGBa": "RGBA"}.get(mode)
    return (whole.convert(between) if between else whole).convert(mode)


def _broken_exif() -> Iterator[tuple[str, bytes]]:
    """Yield EXIF data without an orientation."""
    begin = b"Exif\0\0II*\0\x08\0\0\0"
    for number in (0, 9, 65_535):
        yield str(number), begin + struct.pack("<HHHII", 1, 0x0112, 3, 1, number) + bytes(4)
    yield "text", begin + struct.pack("<HHHI4s", 1, 0x0112, 2, 2, b"6\0") + bytes(4)
    yield "long", begin + struct.pack("<HHHII", 1, 0x0112, 3, 2**31, 9) + bytes(4)
    yield "circle", begin + struct.pack("<HHHII", 1, 0x8769, 4, 1, 8) + struct.pack("<I", 8)
    yield "garbage", b"Exif\0\0MM\0*\0\0\0\x08\xff\xff" + b"\xff" * 40
    yield "short", b"Exif\0\0II"


def _by_hand() -> Iterator[tuple[str, bytes, Shown]]:
    """Yield files in formats that Pillow does not write."""
    seen = gradient_image(SIDE, SIDE)
    grey = np.rint(luma(seen)).astype(np.uint8)
    shown = np.repeat(grey[..., None], 3, 2)
    for colour, channels in CHANNELS.items():
        for depth in (1, 2, 4, 8, 16):
            if depth == 8 or (depth > 8 and colour != 3) or (depth < 8 and colour in (0, 3)):
                values = np.repeat((grey.astype(np.uint32) * (2**depth - 1) // 255)[..., None], channels, 2)
                values[..., channels - 1] = values[..., channels - 1] if channels % 2 else 2**depth - 1
                palette = np.repeat(np.linspace(0, 255, 2 ** min(depth, 8)).astype(np.uint8), 3).tobytes()
                more = [(b"PLTE", palette)] if colour == 3 else []
                for interlaced in (False, True):
                    content = _png(values, depth, colour, more, interlaced)
                    levels = np.repeat((values[..., :1] * 255 // (2**depth - 1)).astype(np.uint8), 3, 2)
                    yield f"colour {colour}, {depth} bits, {interlaced}.png", content, levels
    gamma, unknown = (b"gAMA", struct.pack(">I", 45_455)), (b"xyZw", b"what is this")
    yield (
        "gamma.png",
        _png(grey[..., None], 8, 0, [gamma, unknown, (b"iCCP", b"a\0\0" + zlib.compress(b"none"))]),
        shown,
    )
    yield "long note.png", _png(grey[..., None], 8, 0, [(b"tEXt", b"k\0" + b"a" * 900_000)]), shown
    yield (
        "packed note.png",
        _png(grey[..., None], 8, 0, [(b"zTXt", b"k\0\0" + compressed_zeros(900_000))]),
        shown,
    )
    twelve = (grey.astype(np.uint32) * 4095 // 255).reshape(-1, 2)
    packed = np.stack(
        [twelve[:, 0] >> 4, (twelve[:, 0] & 15) << 4 | twelve[:, 1] >> 8, twelve[:, 1] & 255], 1
    )
    tags: dict[int, int | bytes | list[int]] = {
        256: SIDE,
        257: SIDE,
        259: 1,
        262: 1,
        273: 8,
        277: 1,
        278: SIDE,
    }
    yield "12 bits.tif", tiff(tags | {258: 12}, packed.astype(np.uint8).tobytes()), shown
    turns: tuple[int | bytes, ...] = (0, 9, 65_535, b"6\0")
    for number, turn in enumerate(turns):
        yield f"turn {number}.tif", tiff(tags | {258: 8, 274: turn}, grey.tobytes()), shown
    yield "white is zero.tif", tiff(tags | {258: 8, 262: 0}, (255 - grey).tobytes()), shown
    sixteen = 65_535 - grey.astype(np.uint16) * 257
    yield "white is zero of 16 bits.tif", tiff(tags | {258: 16, 262: 0}, sixteen.tobytes()), shown
    planes = np.ascontiguousarray(seen.transpose(2, 0, 1)).tobytes()
    apart: dict[int, int | bytes | list[int]] = {
        258: [8, 8, 8],
        262: 2,
        277: 3,
        284: 2,
        273: [8 + SIDE**2 * n for n in range(3)],
        279: [SIDE**2] * 3,
    }
    yield "planes.tif", tiff(tags | apart, planes), seen
    jpeg = encode_image(Image.fromarray(seen), "JPEG", quality=95)
    for name, marker, data in (
        ("comment", 0xFE, b"a" * 65_000),
        ("profile", 0xE2, b"ICC_PROFILE\0\1\1" + b"\xff" * 60_000),
        ("photoshop", 0xED, b"Photoshop 3.0\x008BIM\xff\xff\xff"),
        ("pictures", 0xE2, b"MPF\0II*\0\xff\xff\xff\xff"),
    ):
        yield f"{name}.jpg", jpeg[:2] + jpeg_segment(marker, data) + jpeg[2:], seen
    cmyk = encode_image(Image.fromarray(seen).convert("CMYK"), "JPEG", quality=95)
    yield "four colours.jpg", cmyk, seen
    yield "comment.gif", encode_image(grey, "GIF", comment=b"a" * 90_000), shown
    yield "comment.ppm", b"P6 # 9\n#\n36\t36 # 9\n255\n" + seen.tobytes(), seen
    yield "plain.ppm", b"P3 36 36 255\n" + " ".join(map(str, seen.ravel())).encode(), seen
    yield "12 bits.ppm", b"P5 36 36 4095\n" + (grey.astype(np.uint16) * 16).astype(">u2").tobytes(), shown
    upside = bytearray(encode_image(seen, "BMP"))
    upside[22:26] = struct.pack("<i", -SIDE)
    yield "upside down.bmp", bytes(upside), seen[::-1]


def _png(
    values: NDArray[np.generic],
    depth: int,
    colour: int,
    more: list[tuple[bytes, bytes]],
    interlaced: bool = False,
) -> bytes:
    """Return a PNG of pixel values (H, W, C), in one pass or in the seven passes of Adam7."""
    passes = [
        (0, 8, 0, 8),
        (0, 8, 4, 8),
        (4, 8, 0, 4),
        (0, 4, 2, 4),
        (2, 4, 0, 2),
        (0, 2, 1, 2),
        (1, 2, 0, 1),
    ]
    rows = io.BytesIO()
    for top, down, left, right in passes if interlaced else [(0, 1, 0, 1)]:
        for row in values[top::down, left::right]:
            bits = (row.astype(np.uint16)[..., None] >> np.arange(depth)[::-1] & 1).astype(np.uint8)
            rows.write(b"\0" + np.packbits(bits.ravel()).tobytes())
    head = struct.pack(">IIBBBBB", values.shape[1], values.shape[0], depth, colour, 0, 0, interlaced)
    chunks = [(b"IHDR", head), *more, (b"IDAT", zlib.compress(rows.getvalue())), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(kind, data) for kind, data in chunks)
