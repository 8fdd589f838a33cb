"""Limits of memory and time for decoding, checked before an image is decoded."""

import math
from typing import Any

MAX_PIXELS = 89_000_000
"""Largest number of pixels of an image."""
MAX_SIDE = 1 << 20
"""Largest side in pixels: readers hold several rows in memory."""
MAX_DECODE_BYTES = 128 << 20
"""Largest number of bytes to decode an image, besides its file, so that 150 MiB are enough."""
BYTES_PER_PIXEL = {"1": 2, "L": 1, "RGB": 4}
"""Bytes of a pixel by mode. Modes that are converted take DEFAULT_BYTES_PER_PIXEL."""
DEFAULT_BYTES_PER_PIXEL, WEBP_BYTES_PER_PIXEL, BMP_RLE_BYTES_PER_PIXEL = 8, 16, 32
"""WEBP is held in memory several times. Run lengths of BMP are decoded by a slow reader of Pillow."""
MAX_VIDEO_PIXELS = MAX_DECODE_BYTES // 12
"""Largest number of pixels of a video's frame: several frames of 1.5 bytes and one of RGB are in memory."""
MAX_TOTAL_PIXELS = 10**9
"""Largest number of pixels of all scans of a JPEG, or of all frames of an animation. Scans take a second,
frames several."""
MAX_PNG_TEXT_CHUNKS = 16
"""Largest number of compressed text chunks of a PNG, which can each take 4 MB."""
JPEG_LENGTH_MARKERS = range(0xC0, 0xFF)
"""Markers of JPEG that are followed by a length, except those of restart, start and end."""
TIFF_BITS, TIFF_COMPRESSION, TIFF_STRIPS, TIFF_SAMPLES, TIFF_ROWS, TIFF_COUNTS = 258, 259, 273, 277, 278, 279
TIFF_TILE_WIDTH, TIFF_TILE_HEIGHT, TIFF_TILES, TIFF_TILE_COUNTS = 322, 323, 324, 325
"""Tags of TIFF."""
TIFF_UNCOMPRESSED, TIFF_JPEG = 1, (6, 7)
"""Compressions of TIFF."""


def has_many_text_chunks(content: bytes) -> bool:
    """Return whether a PNG has too many text chunks, which are unpacked when the file is opened."""
    return content[:4] == b"\x89PNG" and content.count(b"zTXt") + content.count(b"iTXt") > MAX_PNG_TEXT_CHUNKS


def image_size_error(image: Any, content: bytes, size: int) -> str:
    """Say why a Pillow image, opened from `content`, is too large to decode; empty if it can be decoded.

    A JPEG is set to be decoded at a smaller size, for a model that reads `size` x `size` pixels.
    """
    width, height = image.size
    image.draft(None, (2 * size, 2 * size))
    decode_bytes, scanned_pixels = (
        math.prod(image.size) * BYTES_PER_PIXEL.get(image.mode, DEFAULT_BYTES_PER_PIXEL),
        0,
    )
    if image.format in ("JPEG", "MPO"):
        first = _first_scan(content)
        is_single_scan = content[first : first + 2] == b"\xff\xda" and content[first + 4] == image.layers
        if "progressive" in image.info or not is_single_scan:  # all coefficients are in memory
            decode_bytes += 2 * image.layers * width * height
            scanned_pixels = content.count(b"\xff\xda", first) * width * height
    elif image.format == "WEBP":
        decode_bytes = width * height * WEBP_BYTES_PER_PIXEL
    elif image.format == "BMP" and image.info.get("compression") in (1, 2):
        decode_bytes = width * height * BMP_RLE_BYTES_PER_PIXEL
    elif (
        image.format == "TIFF" and image.tag_v2.get(TIFF_COMPRESSION, TIFF_UNCOMPRESSED) != TIFF_UNCOMPRESSED
    ):
        if _is_truncated(image.tag_v2, len(content)):
            return "damaged or cut off (its end is missing); get the file again"
        block_pixels, pixel_bytes = _block_size(image)
        decode_bytes += block_pixels * pixel_bytes
        if image.tag_v2[TIFF_COMPRESSION] in TIFF_JPEG:
            scanned_pixels = block_pixels * content.count(b"\xff\xda")
    if width * height > MAX_PIXELS or max(width, height) > MAX_SIDE or decode_bytes > MAX_DECODE_BYTES:
        return f"{width:,} x {height:,} pixels are too many; make the image smaller"
    return (
        f"{width:,} x {height:,} pixels in too many scans; save the image again"
        if scanned_pixels > MAX_TOTAL_PIXELS
        else ""
    )


def video_size_error(size: tuple[int, int]) -> str:
    """Say why a video of this size is too large to decode; empty if it can be decoded."""
    width, height = size
    return (
        f"{width:,} x {height:,} pixels are too many; make the video smaller"
        if width * height > MAX_VIDEO_PIXELS
        else ""
    )


def frame_count_error(size: tuple[int, int], frames: int, max_frames: int) -> str:
    """Say why an animation or a video has too many frames to decode; empty if it can be decoded."""
    if frames > max_frames:
        return f"{frames:,} frames, and data.max_length={max_frames}: train with more, or cut the clip"
    width, height = size
    if frames * width * height > MAX_TOTAL_PIXELS:
        return f"{frames:,} frames of {width:,} x {height:,} pixels are too many; make it smaller"
    return ""


def _first_scan(content: bytes) -> int:
    """Return the offset of the first scan of a JPEG, or of the first bytes that are not a header segment."""
    offset = 2
    while (
        content[offset] == 0xFF
        and content[offset + 1] in JPEG_LENGTH_MARKERS
        and content[offset + 1] not in range(0xD0, 0xDB)
    ):
        offset += 2 + int.from_bytes(content[offset + 2 : offset + 4], "big")
    return offset


def _is_truncated(tags: Any, length: int) -> bool:
    """Return whether strips or tiles of a TIFF are beyond the end of its file."""
    starts, counts = (
        (tags.get(TIFF_STRIPS) or tags[TIFF_TILES]),
        (tags.get(TIFF_COUNTS) or tags[TIFF_TILE_COUNTS]),
    )
    return any(start + count > length for start, count in zip(starts, counts, strict=True))


def _block_size(image: Any) -> tuple[int, int]:
    """Return the pixels of a strip or tile of a TIFF, which is decoded as a whole, and the bytes
    per pixel."""
    tags, (width, height) = image.tag_v2, image.size
    samples, bits = tags.get(TIFF_SAMPLES, 1), max(tags.get(TIFF_BITS, (1,)))
    pixel_bytes = -(-samples * bits // 8) + (2 * samples + 4 if tags[TIFF_COMPRESSION] in TIFF_JPEG else 0)
    if TIFF_TILE_WIDTH in tags:  # a tile can be larger than the image
        return tags[TIFF_TILE_WIDTH] * tags[TIFF_TILE_HEIGHT], pixel_bytes
    return width * min(height, tags.get(TIFF_ROWS, height)), pixel_bytes
