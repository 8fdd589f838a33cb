"""How much memory and time a picture would take, known before it is decoded."""

import math
from typing import Any

MAX_PIXELS = 89_000_000
"""Pixels that a picture may have."""
MAX_SIDE = 1 << 20
"""Pixels that a side may have: readers hold several rows."""
MAX_DECODE_BYTES = 128 << 20
"""Bytes that may be held to read one, beside its file, so that 150 MiB are enough."""
BYTES_PER_PIXEL = {"1": 2, "L": 1, "RGB": 4}
"""What a pixel takes by its mode; those that are converted on the way, DEFAULT_BYTES_PER_PIXEL."""
DEFAULT_BYTES_PER_PIXEL, WEBP_BYTES_PER_PIXEL, BMP_RLE_BYTES_PER_PIXEL = 8, 16, 32
"""WEBP is held several times over; a BMP's run lengths are read by a slow reader of Pillow's."""
MAX_VIDEO_PIXELS = MAX_DECODE_BYTES // 12
"""Pixels that a frame of a video may have: some frames of 1.5 bytes are held, and one in colours."""
MAX_TOTAL_PIXELS = 10**9
"""Pixels that all scans of a JPEG, or all frames of an animation, may go over; a second for the scans, some
for frames."""
MAX_PNG_TEXT_CHUNKS = 16
"""Packed notes that a PNG may have: each may take 4 MB."""
JPEG_LENGTH_MARKERS = range(0xC0, 0xFF)
"""Markers of JPEG behind which a length stands, but for those of restart, start and end."""
TIFF_BITS, TIFF_COMPRESSION, TIFF_STRIPS, TIFF_SAMPLES, TIFF_ROWS, TIFF_COUNTS = 258, 259, 273, 277, 278, 279
TIFF_TILE_WIDTH, TIFF_TILE_HEIGHT, TIFF_TILES, TIFF_TILE_COUNTS = 322, 323, 324, 325
"""Tags of TIFF."""
TIFF_UNCOMPRESSED, TIFF_JPEG = 1, (6, 7)
"""Its compressions."""


def has_many_text_chunks(content: bytes) -> bool:
    """Of a PNG: they are unpacked while it is opened."""
    return content[:4] == b"\x89PNG" and content.count(b"zTXt") + content.count(b"iTXt") > MAX_PNG_TEXT_CHUNKS


def image_size_error(image: Any, content: bytes, size: int) -> str:
    """Why a picture of Pillow's, opened from `content`, is not to be decoded; empty if it is.

    A JPEG is set to be decoded smaller, for a model that sees `size` x `size`.
    """
    width, height = image.size
    image.draft(None, (2 * size, 2 * size))
    held, over = math.prod(image.size) * BYTES_PER_PIXEL.get(image.mode, DEFAULT_BYTES_PER_PIXEL), 0
    if image.format in ("JPEG", "MPO"):
        first = _first_scan(content)
        whole = content[first : first + 2] == b"\xff\xda" and content[first + 4] == image.layers
        if "progressive" in image.info or not whole:  # in several scans: all coefficients are held
            held += 2 * image.layers * width * height
            over = content.count(b"\xff\xda", first) * width * height
    elif image.format == "WEBP":
        held = width * height * WEBP_BYTES_PER_PIXEL
    elif image.format == "BMP" and image.info.get("compression") in (1, 2):
        held = width * height * BMP_RLE_BYTES_PER_PIXEL
    elif (
        image.format == "TIFF" and image.tag_v2.get(TIFF_COMPRESSION, TIFF_UNCOMPRESSED) != TIFF_UNCOMPRESSED
    ):
        if _is_truncated(image.tag_v2, len(content)):
            return "damaged or cut off (its end is missing); get the file again"
        block, weight = _block(image)
        held += block * weight
        over = block * content.count(b"\xff\xda") if image.tag_v2[TIFF_COMPRESSION] in TIFF_JPEG else 0
    if width * height > MAX_PIXELS or max(width, height) > MAX_SIDE or held > MAX_DECODE_BYTES:
        return f"{width:,} x {height:,} pixels are too many; make it smaller"
    return (
        f"{width:,} x {height:,} pixels in too many scans; save it again" if over > MAX_TOTAL_PIXELS else ""
    )


def video_size_error(size: tuple[int, int]) -> str:
    """Why a video of that size is not to be decoded; empty if it is."""
    width, height = size
    return (
        f"{width:,} x {height:,} pixels are too many; make it smaller"
        if width * height > MAX_VIDEO_PIXELS
        else ""
    )


def frame_count_error(size: tuple[int, int], frames: int, max_frames: int) -> str:
    """Why an animation, or a video, of so many frames is not to be decoded; empty if it is."""
    if frames > max_frames:
        return f"{frames:,} frames, and data.max_length={max_frames}: train with more, or cut the clip"
    width, height = size
    over = frames * width * height > MAX_TOTAL_PIXELS
    return f"{frames:,} frames of {width:,} x {height:,} pixels are too many; make it smaller" if over else ""


def _first_scan(content: bytes) -> int:
    """Where the first scan of a JPEG begins, or what is no plain part of its head."""
    at = 2
    while (
        content[at] == 0xFF
        and content[at + 1] in JPEG_LENGTH_MARKERS
        and content[at + 1] not in range(0xD0, 0xDB)
    ):
        at += 2 + int.from_bytes(content[at + 2 : at + 4], "big")
    return at


def _is_truncated(tags: Any, length: int) -> bool:
    """Whether strips or tiles of a TIFF lie behind the end of its file."""
    starts, counts = (
        (tags.get(TIFF_STRIPS) or tags[TIFF_TILES]),
        (tags.get(TIFF_COUNTS) or tags[TIFF_TILE_COUNTS]),
    )
    return any(start + count > length for start, count in zip(starts, counts, strict=True))


def _block(image: Any) -> tuple[int, int]:
    """The pixels of a strip or tile of a TIFF, which is decoded as a whole, and the bytes that each takes."""
    tags, (width, height) = image.tag_v2, image.size
    samples, bits = tags.get(TIFF_SAMPLES, 1), max(tags.get(TIFF_BITS, (1,)))
    weight = -(-samples * bits // 8) + (2 * samples + 4 if tags[TIFF_COMPRESSION] in TIFF_JPEG else 0)
    if TIFF_TILE_WIDTH in tags:  # a tile may be larger than the picture
        return tags[TIFF_TILE_WIDTH] * tags[TIFF_TILE_HEIGHT], weight
    return width * min(height, tags.get(TIFF_ROWS, height)), weight
