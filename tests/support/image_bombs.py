"""Bombs: files of at most a megabyte that would take much memory or time if a reader trusted them."""

import struct
import zlib
from collections.abc import Callable

from PIL import Image

from tests.support.image_bytes import (
    CHANNELS,
    compressed_zeros,
    encode_image,
    gradient_image,
    jpeg_segment,
    raw_png,
    tiff,
)


def full(side: int, depth: int, colour: int) -> bytes:
    """Return a PNG that contains all of its pixels."""
    return raw_png(
        side, side, depth, colour, packed=compressed_zeros(side * (1 + side * CHANNELS[colour] * depth // 8))
    )


def notes(*chunks: tuple[bytes, bytes]) -> bytes:
    return raw_png(16, 16, 8, 0, *chunks)


def note(number: int, kind: bytes) -> tuple[bytes, bytes]:
    """Return a compressed megabyte of characters that take four bytes each in Python."""
    between = b"\0\0" if kind == b"zTXt" else b"\0\1\0\0\0"
    return kind, b"k%d" % number + between + zlib.compress("😀".encode() + bytes((1 << 20) - 4))


def gif(width: int, height: int, *blocks: bytes, frame: tuple[int, int] = (16, 16)) -> bytes:
    """Return a GIF of a canvas, `blocks`, and a truncated frame."""
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6)
    return head + b"".join(blocks) + b"," + struct.pack("<HHHHB", 0, 0, *frame, 0) + b"\x02\x02\x44\x01\0;"


def bmp(width: int, height: int, bits: int, packing: int, data: bytes = b"") -> bytes:
    palette = bytes(1024) if bits == 8 else b""
    start = 54 + len(palette)
    sides = struct.pack("<IiiHHIIIIII", 40, width, height, 1, bits, packing, len(data), 0, 0, 0, 0)
    return b"BM" + struct.pack("<III", start + len(data), 0, start) + sides + palette + data


def riff(*chunks: tuple[bytes, bytes]) -> bytes:
    body = b"".join(kind + struct.pack("<I", len(data)) + data for kind, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def webp(side: int) -> bytes:
    """Return a WEBP with another size in its header."""
    return (
        encode_image(gradient_image(), "WEBP", lossless=True)[:21]
        + struct.pack("<I", side - 1 | side - 1 << 14)
        + bytes(20)
    )


def canvas(width: int, height: int, animated: bool) -> tuple[bytes, bytes]:
    sides = b"".join(struct.pack("<I", side - 1)[:3] for side in (width, height))
    return b"VP8X", bytes([2 * animated, 0, 0, 0]) + sides


def strip(width: int, height: int, samples: int = 1, bits: int = 8, packing: int = 8) -> bytes:
    """Return a TIFF of zeros in a single strip."""
    data = compressed_zeros(width * height * samples * bits // 8) if packing == 8 else bytes(99)
    tags: dict[int, int | bytes | list[int]] = {
        256: width,
        257: height,
        258: [bits] * samples,
        259: packing,
        262: 1 + (samples > 1),
        273: 8,
    }
    tags |= {277: samples, 278: height, 279: len(data)}
    return tiff(tags, data)


def in_tiff(side: int, jpeg: bytes) -> bytes:
    tags = {256: side, 257: side, 258: 8, 259: 7, 262: 1, 273: 8, 277: 1, 278: side, 279: len(jpeg)}
    return tiff(tags, jpeg)


def sized(jpeg: bytes, width: int, height: int) -> bytes:
    """Return a JPEG with another size in its header."""
    at = next(jpeg.index(mark) for mark in (b"\xff\xc0", b"\xff\xc2") if mark in jpeg) + 5
    return jpeg[:at] + struct.pack(">HH", height, width) + jpeg[at + 4 :]


def jpeg(side: int = 16, mode: str = "RGB", **settings: object) -> bytes:
    return encode_image(Image.new(mode, (side, side)), "JPEG", **settings)


def a_scan_each(side: int) -> bytes:
    """Return a baseline JPEG with one scan per component, whose coefficients are all kept in memory."""
    head = sized(jpeg(subsampling=0), side, side)
    head = head[: head.index(b"\xff\xda")]
    return head + jpeg_segment(0xDA, bytes([1, 1, 0, 0, 63, 0])) + b"\x28" * 9 + b"\xff\xd9"


def many_scans() -> bytes:
    """Return a progressive JPEG with 10,000 scans."""
    whole = jpeg(2_000, "L", progressive=True)
    last = whole[whole.rindex(b"\xff\xda") : -2]
    return whole[:-2] + last * 10_000 + b"\xff\xd9"


def behind_junk(side: int) -> bytes:
    """Return the same JPEG with a header whose segments can't be parsed."""
    whole = a_scan_each(side)
    return whole[:2] + b"\xff\xff" + jpeg_segment(0xFE, b"") + whole[2:]


REFUSED: dict[str, Callable[[], bytes]] = {
    "pixels.png": lambda: raw_png(20_000, 20_000),
    "more than Pillow warns of.png": lambda: raw_png(10_000, 9_000, 1, 0),
    "colours.png": lambda: raw_png(6_000, 6_000),
    "transparent.png": lambda: raw_png(4_200, 4_200, 8, 6),
    "palette.png": lambda: raw_png(5_000, 5_000, 8, 3),
    "16 bits.png": lambda: raw_png(5_000, 5_000, 16, 0),
    "16 bits of colours.png": lambda: raw_png(6_000, 6_000, 16),
    "16 bits, transparent.png": lambda: raw_png(4_200, 4_200, 16, 4),
    "interlaced.png": lambda: raw_png(9_999, 9_999, 8, 2, interlaced=True),
    "header.png": lambda: raw_png(2**31 - 1, 2**31 - 1, packed=b""),
    "line.png": lambda: raw_png(80_000_000, 1, 8, 0),
    "column.png": lambda: raw_png(1, 80_000_000, 8, 0, packed=b""),
    "packed note.png": lambda: notes((b"zTXt", b"k\0\0" + compressed_zeros(1 << 27))),
    "packed notes.png": lambda: notes(*(note(number, b"zTXt") for number in range(64))),
    "wide notes.png": lambda: notes(*(note(number, b"iTXt") for number in range(60))),
    "profile.png": lambda: notes((b"iCCP", b"k\0\0" + compressed_zeros(1 << 27))),
    "canvas.gif": lambda: gif(65_535, 65_535),
    "frame.gif": lambda: gif(16, 16, frame=(60_000, 60_000)),
    "9,999.gif": lambda: gif(9_999, 9_999, frame=(9_999, 9_999)),
    "comment.gif": lambda: gif(16, 16, b"!\xfe" + b"\x01a" * 450_000 + b"\0"),
    "comments.gif": lambda: gif(16, 16, b"!\xfe\x01a\0" * 190_000),
    "header.bmp": lambda: bmp(50_000, 50_000, 24, 0),
    "upside down.bmp": lambda: bmp(50_000, -(2**31), 24, 0),
    "moves.bmp": lambda: bmp(14_000_000, 1, 8, 1, b"\0\2\0\xff" * 9),
    "line ends.bmp": lambda: bmp(9_000, 1_600, 8, 1, b"\1\0\0\0" * 2_000),
    "no pixels.bmp": lambda: bmp(5_400, 5_400, 24, 0),
    "header.ppm": lambda: b"P6 50000 50000 255\n",
    "no pixels.pgm": lambda: b"P5 9400 9400 255\n",
    "few of 16 bits.ppm": lambda: b"P6 3800 3800 65535\n" + bytes(400_000),
    "plain.ppm": lambda: b"P3 2000 2000 255\n" + b"1 " * 200_000,
    "digits.ppm": lambda: b"P3 2000 2000 255\n" + b"1" * 900_000,
    "number.pgm": lambda: b"P5 " + b"9" * 900_000,
    "floats.ppm": lambda: b"Pf\n5800 5800\n-1.0\n",
    "largest.webp": lambda: webp(16_383),
    "3,000.webp": lambda: webp(3_000),
    "canvas.webp": lambda: riff(canvas(1 << 24, 255, False), (b"VP8L", b"")),
    "animated.webp": lambda: riff(canvas(16_383, 16_383, True), (b"ANIM", bytes(6))),
    "tile.tif": lambda: tiff(
        {256: 9, 257: 9, 259: 8, 262: 1, 322: 40_000, 323: 40_000, 324: [8], 325: [9]}, bytes(9)
    ),
    "strip.tif": lambda: strip(9_400, 9_400),
    "colours.tif": lambda: strip(6_000, 6_000, 3, packing=5),
    "16 bits.tif": lambda: strip(4_000, 4_000, 4, 16, packing=5),
    "fax.tif": lambda: strip(65_000, 65_000, bits=1, packing=4),
    "samples.tif": lambda: tiff(
        {256: 16, 257: 16, 258: [8] * 9, 259: 1, 262: 1, 273: 8, 277: 65_535, 279: 9}
    ),
    "beyond its end.tif": lambda: tiff(
        {256: 16, 257: 16, 258: 8, 259: 8, 262: 1, 273: 8, 277: 1, 279: 2**32 - 1}
    ),
    "directories.tif": lambda: b"II+\0\x08\0\0\0" + struct.pack("<QQ", 16, 2**60) + bytes(99),
    "JPEG.tif": lambda: in_tiff(9_400, sized(jpeg(mode="L"), 9_400, 9_400)),
    "progressive JPEG.tif": lambda: in_tiff(5_400, sized(jpeg(mode="L", progressive=True), 5_400, 5_400)),
    "header.jpg": lambda: sized(jpeg(), 65_500, 65_500),
    "progressive.jpg": lambda: sized(jpeg(progressive=True), 5_000, 5_000),
    "four colours.jpg": lambda: sized(jpeg(mode="CMYK", progressive=True), 4_200, 4_200),
    "a scan each.jpg": lambda: a_scan_each(9_000),
    "behind junk.jpg": lambda: behind_junk(9_000),
    "many scans.jpg": many_scans,
}
"""By name; there is no reading them."""
LARGEST: dict[str, Callable[[], bytes]] = {
    "colours.png": lambda: full(5_790, 8, 2),
    "transparent.png": lambda: full(4_090, 8, 6),
    "palette.png": lambda: full(4_090, 8, 3),
    "grey.png": lambda: full(9_430, 8, 0),
    "16 bits.png": lambda: full(4_090, 16, 0),
    "transparent.webp": lambda: encode_image(
        Image.new("RGBA", (2_890, 2_890)), "WEBP", lossless=True, method=0
    ),
    "frame.gif": lambda: encode_image(Image.new("P", (4_090, 4_090)), "GIF", transparency=0),
    "progressive.jpg": lambda: jpeg(4_690, progressive=True, subsampling=0),
    "four colours.jpg": lambda: sized(jpeg(mode="CMYK", progressive=True), 4_060, 4_060),
    "a scan each.jpg": lambda: a_scan_each(4_690),
    "strip.tif": lambda: strip(8_180, 8_180),
    "16 bits.tif": lambda: strip(3_650, 3_650, 3, 16),
    "progressive JPEG.tif": lambda: in_tiff(4_080, jpeg(4_080, "L", progressive=True)),
}
"""Just small enough to be read."""
READ: dict[str, Callable[[], bytes]] = {
    "animation.png": lambda: notes((b"acTL", struct.pack(">II", 2**31 - 1, 0))),
    "texts.png": lambda: notes(*[(b"tEXt", b"k\0" + bytes(90))] * 9_000),
    "chunks.png": lambda: notes(*[(b"vpAg", b"")] * 40_000),
    "more rows.png": lambda: raw_png(16, 16, 8, 0, packed=compressed_zeros(1 << 27)),
    "turns.png": lambda: notes((b"eXIf", b"II*\0\x08\0\0\0\1\0" + struct.pack("<HHIII", 0x8769, 4, 1, 8, 8))),
    "second frame.gif": lambda: (
        encode_image(gradient_image(), "GIF")[:-1] + gif(0, 0, frame=(65_535, 65_535))[19:]
    ),
    "rows.tif": lambda: strip(100, 100).replace(
        struct.pack("<HHII", 278, 4, 1, 100), struct.pack("<HHII", 278, 4, 1, 2**32 - 1)
    ),
    "its own next.tif": lambda: (whole := strip(16, 16))[:-4] + whole[4:8],
    "strips.tif": lambda: tiff(
        {256: 16, 257: 30_000, 258: 8, 259: 1, 262: 1, 273: [8] * 30_000, 277: 1, 278: 1, 279: [16] * 30_000},
        bytes(16),
    ),
    "notes.jpg": lambda: (whole := jpeg())[:2] + jpeg_segment(0xE1, b"Exif\0\0II*\0") * 30_000 + whole[2:],
    "fill.jpg": lambda: (whole := jpeg())[:2] + b"\xff" * 300_000 + whole[2:],
    "second picture.jpg": lambda: encode_image(
        gradient_image(), "MPO", save_all=True, append_images=[Image.new("L", (4_000, 4_000))]
    ),
}
"""What is read of these is harmless: the first picture alone."""
