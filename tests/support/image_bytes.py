"""Test images: a scene, encoded by Pillow, or by hand in formats that Pillow does not write."""

import io
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE = 16
TiffTags = Mapping[int, int | bytes | list[int]]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""By the colour type of a PNG."""


def gradient_image(height: int = SIDE, width: int = SIDE) -> NDArray[np.uint8]:
    """Return an image (height, width, 3) whose pixel values differ in both directions and all channels."""
    y, x = np.mgrid[:height, :width]
    colours = [y * 255 // max(1, height - 1), x * 255 // max(1, width - 1), (x + 2 * y) * 5 % 256]
    return np.stack(colours, 2).astype(np.uint8)


def luma(image: NDArray[np.uint8]) -> NDArray[np.float64]:
    return image @ np.array([0.299, 0.587, 0.114])


def encode_image(image: Any, form: str = "PNG", **settings: Any) -> bytes:
    """Encode with Pillow. `image` is a Pillow image or an array."""
    out = io.BytesIO()
    picture = Image.fromarray(image) if isinstance(image, np.ndarray) else image
    picture.save(out, form, **settings)
    return out.getvalue()


def compressed_zeros(size: int) -> bytes:
    """Return this many zeros, compressed a thousandfold."""
    rows = zlib.compressobj(1)
    block = bytes(1 << 20)
    packed = [rows.compress(block) for _ in range(size >> 20)]
    return b"".join([*packed, rows.compress(bytes(size % (1 << 20))), rows.flush()])


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def raw_png(
    width: int,
    height: int,
    depth: int = 8,
    colour: int = 2,
    *more: tuple[bytes, bytes],
    packed: bytes | None = None,
    interlaced: bool = False,
) -> bytes:
    """Return a PNG of `packed` rows, or of zeros (at most 64 MB), with the chunks `more`."""
    row = 1 + (width * CHANNELS[colour] * depth + 7) // 8
    packed = compressed_zeros(min(row * height, 1 << 26)) if packed is None else packed
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    chunks = [(b"IHDR", head), *more, *([(b"PLTE", bytes(6))] if colour == 3 else [])]
    chunks += [(b"IDAT", packed), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(kind, data) for kind, data in chunks)


def tiff(tags: TiffTags, data: bytes = b"") -> bytes:
    """Return a TIFF of one directory: numbers (LONG), lists of numbers, or texts. `data` starts at byte 8."""
    entries, more = b"", b""
    start = 8 + len(data)
    behind = start + 2 + 12 * len(tags) + 4
    for tag, value in sorted(tags.items()):
        if isinstance(value, int):
            entries += struct.pack("<HHII", tag, 4, 1, value)
            continue
        kind, count, content = (
            (2, len(value), value)
            if isinstance(value, bytes)
            else (4, len(value), struct.pack(f"<{len(value)}I", *value))
        )
        if len(content) > 4:
            entries += struct.pack("<HHII", tag, kind, count, behind + len(more))
            more += content
        else:
            entries += struct.pack("<HHI", tag, kind, count) + content.ljust(4, b"\0")
    return (
        b"II*\0" + struct.pack("<I", start) + data + struct.pack("<H", len(tags)) + entries + bytes(4) + more
    )


def jpeg_segment(marker: int, data: bytes) -> bytes:
    return struct.pack(">BBH", 255, marker, len(data) + 2) + data
