"""A picture: from a file's bytes, or an array, to 8-bit pixels, upright and no larger than a model needs."""

import hashlib
import io
import logging
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveal.data.images.decode_limits import (
    TIFF_BITS,
    frame_count_error,
    has_many_text_chunks,
    image_size_error,
)

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels = NDArray[np.uint8]
"""(H, W, C)"""


class DecodedImage(NamedTuple):
    """A picture as a model needs it, and what tells whether it is the same as another one."""

    pixels: Pixels
    """An array of its own, which torch may take as it is."""
    content: str
    """The sha256 of the pixels before they are resized; of a JPEG, which is decoded no larger than is needed,
    that of the file. So no setting changes it."""


IMAGE_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
IMAGE_SUFFIXES = (
    ".jpg",
    ".jpeg",
    ".png",
    ".gif",
    ".bmp",
    ".webp",
    ".tif",
    ".tiff",
    ".ppm",
    ".pgm",
    ".pbm",
    ".pnm",
)
"""Of the files that are taken as pictures where nothing else says so; what is in a file decides its form."""
ANIMATED_FORMATS = ("GIF", "PNG", "WEBP")
"""Forms that hold animations; of others more pictures than one are pages, or sizes."""
RESIZABLE_MODES = ("L", "LA", "RGB", "RGBA", "I", "F")
"""Modes that can be resized."""
EXIF_TRANSPOSES = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}
"""By the orientation in a picture's EXIF what makes it upright, as `Image.Transpose` numbers it."""
EXIF_ORIENTATION = 0x0112
TIFF_PHOTOMETRIC = 262
"""A tag of TIFF: 0 is white, or black."""
WHITE_LEVELS = (1, 255, 65_535)
"""What white may be: of floats any of them, of whole numbers one of the last two."""
MAX_ASPECT_RATIO = 3
"""How many times as long as its short side a picture is kept."""
HASHED_PIXELS = 1 << 20
"""So many pixels of a picture are hashed at once, to hold no second one in memory."""
logging.getLogger("PIL").addHandler(logging.NullHandler())  # else some of its readers write to standard error


def stored_short_side(short: int, size: int) -> int:
    """The short side that is kept of a picture for a model that sees `size` x `size`: the margin of an eighth
    around the centre that recipes for evaluation cut off. Smaller ones are `upscale` where they are seen."""
    return min(short, size * 8 // 7)


def upscaled_shape(height: int, width: int, size: int) -> tuple[int, int]:
    """(H, W) with sides of at least `size`, in the same proportion."""
    short = min(height, width)
    side = max(short, size)
    return round(height * side / short), round(width * side / short)


def upscale(pixels: Pixels, size: int) -> Pixels:
    """Its short side at least `size`."""
    from PIL import Image

    height, width, channels = pixels.shape
    shape = upscaled_shape(height, width, size)
    if shape == (height, width):
        return pixels
    image = Image.fromarray(pixels[..., 0] if channels == 1 else pixels)
    large = image.resize(shape[::-1], Image.Resampling.BILINEAR)
    return np.array(large).reshape(*shape, channels)


def decode_image(content: bytes, size: int, channels: int) -> DecodedImage | str:
    """The picture (H, W, channels) of a file, the short side up to `size * 8 // 7`; or why not.

    Of an animation the first picture; what is transparent is white; 16 bits become 8. A picture with such a
    short side, or a smaller one, stays as it is, bit for bit. What would take too much memory is known
    before it is decoded.
    """
    found = _decode(content, size, channels, None)
    return found if isinstance(found, str) else found[0]


def decode_animation(
    content: bytes, size: int, channels: int, max_frames: int
) -> list[DecodedImage | str] | str:
    """The same for each frame of an animation (GIF, PNG, WEBP), of which there may be `max_frames`.

    Where one can't be read it says why, and ends: the frames behind it are made of it.
    """
    return _decode(content, size, channels, max_frames)


def _decode(
    content: bytes, size: int, channels: int, max_frames: int | None
) -> list[DecodedImage | str] | str:
    """The first picture; or as many as `max_frames`."""
    from PIL import Image, UnidentifiedImageError

    if not content:
        return "empty; get the file again"
    if has_many_text_chunks(content):
        return "too many notes in it; save it without them"
    found: list[DecodedImage | str] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(content), formats=IMAGE_FORMATS) as image:
                if why := image_size_error(image, content, size):
                    return why
                count = (
                    1
                    if max_frames is None or image.format not in ANIMATED_FORMATS
                    else getattr(image, "n_frames", 1)
                )
                if max_frames is not None and (why := frame_count_error(image.size, count, max_frames)):
                    return why
                for number in range(count):
                    image.seek(number)
                    image.load()
                    found.append(
                        _resize_and_convert(_normalize_tiff(_apply_orientation(image), image), size, channels)
                    )
                if image.format in ("JPEG", "MPO") and isinstance(found[0], DecodedImage):
                    return [DecodedImage(found[0].pixels, hashlib.sha256(content).hexdigest())]
                return found
    except UnidentifiedImageError:
        return f"no picture that can be read ({', '.join(IMAGE_FORMATS)}); convert it to one of them"
    except Image.DecompressionBombError:
        return "far too many pixels; make it smaller"
    except Exception as error:  # of Pillow's readers, of many kinds
        why = (
            f"damaged or cut off ({(str(error) or type(error).__name__).splitlines()[0]}); get the file again"
        )
        return [*found, why] if found else why


def image_from_array(values: NDArray[Any], size: int, channels: int) -> DecodedImage | str:
    """The same for an array (H, W), (H, W, 1), (H, W, 3) or, with transparency, (H, W, 4)."""
    from PIL import Image

    values = values[..., 0] if values.shape[2:] == (1,) else values
    if values.ndim not in (2, 3) or values.shape[2:] not in ((), (3,), (4,)) or not values.size:
        return f"an array {values.shape}; (height, width), or with 1, 3 or 4 channels is needed"
    levels = to_uint8(values)
    if isinstance(levels, str):
        return levels
    if levels.shape == (size, size) and channels == 1:  # at once, since frames of clips are many
        content = hashlib.sha256(f"{(size, size, 1)}".encode() + levels.tobytes())
        return DecodedImage(levels[..., None].copy(), content.hexdigest())
    return _resize_and_convert(Image.fromarray(levels), size, channels)


def _resize_and_convert(image: "Image", size: int, channels: int) -> DecodedImage | str:
    """A decoded picture, resized (antialiased) and on white."""
    if image.mode.startswith("I;"):
        image = image.convert("I")
    elif image.mode not in RESIZABLE_MODES or "transparency" in image.info:
        image = image.convert("RGBA" if image.has_transparency_data else "L" if image.mode == "1" else "RGB")
    small = _composite_on_white(_resize(image, size))
    if isinstance(small, str):
        return small
    wanted = "L" if channels == 1 else "RGB"
    small = small if small.mode == wanted else small.convert(wanted)
    return DecodedImage(np.array(small).reshape(*small.size[::-1], channels), _pixel_hash(image))


def _composite_on_white(image: "Image") -> "Image | str":
    """Of 8 bits, and without transparency; or why not."""
    from PIL import Image

    if image.mode in ("I", "F"):
        levels = to_uint8(np.asarray(image), WHITE_LEVELS[-1] if image.mode == "I" else None)
        return levels if isinstance(levels, str) else Image.fromarray(levels)
    if image.mode in ("LA", "RGBA"):
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")
    return image


def _pixel_hash(image: "Image") -> str:
    """The sha256 of its pixels, on white; of more than 8 bits, as they are."""
    (width, height), exact = image.size, image.mode in ("I", "F")
    rows = max(1, HASHED_PIXELS // width)
    found = hashlib.sha256(f"{(height, width, 1 if exact or image.mode == 'L' else 3)}".encode())
    for top in range(0, height, rows):
        strip = image.crop((0, top, width, min(height, top + rows)))
        plain = strip if exact else _composite_on_white(strip)
        found.update(plain.tobytes())  # type: ignore[union-attr]  # of 8 bits nothing is refused
    return found.hexdigest()


def white_level(sets: Iterable[NDArray[Any]]) -> int:
    """What white is in `sets` of pictures (N, H, W) or (N, H, W, C), all kept alike: the least of
    WHITE_LEVELS that none of their values is above. Pictures that can't be used don't count."""
    highest, least = 0.0, 0
    for pictures in sets:
        kind, inside = pictures.dtype.kind, tuple(range(1, pictures.ndim))
        if kind in "iuf" and pictures.itemsize > 1 and pictures.size:
            low, high = pictures.min(inside), pictures.max(inside)
            usable = (low >= 0) & (high <= WHITE_LEVELS[-1])
            highest = max(highest, float(high[usable].max(initial=0)))
        least = 0 if kind == "f" else 1
    return next(white for white in WHITE_LEVELS[least:] if highest <= white)


def to_uint8(values: NDArray[Any], white: int | None = None) -> Pixels | str:
    """Levels of 8 bits from those whose `white` is known; else what `white_level` says of them alone, and a
    dark picture may be taken for one of fewer bits. Or why not."""
    if values.dtype == np.uint8 or not values.size:
        return values.astype(np.uint8, copy=False)
    if values.dtype == np.bool_:
        return values * np.uint8(255)
    if values.dtype.kind not in "iuf":
        return f"values of {values.dtype}; save it with 8 bits"
    low, high = float(values.min()), float(values.max())
    if not 0 <= low <= high <= WHITE_LEVELS[-1]:  # NaN too
        return f"its values go from {low:g} to {high:g}; save it with 8 or 16 bits"
    white = white or white_level([values[None]])
    if values.dtype.kind in "iu":
        return (values >> 8 if white > 255 else values).astype(np.uint8)
    return np.rint(values * np.float32(255 / white)).astype(np.uint8)


def _apply_orientation(image: "Image") -> "Image":
    """Turned as its EXIF says, if that can be read."""
    from PIL.Image import Transpose

    try:
        turn = EXIF_TRANSPOSES.get(image.getexif().get(EXIF_ORIENTATION, 1))
    except Exception:  # of damaged notes, of many kinds: the picture is there
        turn = None
    return image if turn is None else image.transpose(Transpose(turn))


def _normalize_tiff(image: "Image", read: Any) -> "Image":
    """Of a TIFF, as it was `read`, in 16 bits where they are 12, and not the negative where its zero is
    white: Pillow leaves both as they are. Of 32 bits, in 8 where they are no more."""
    from PIL import Image

    if read.format != "TIFF" or not read.mode.startswith("I"):
        return image
    tags = read.tag_v2
    if read.mode == "I":
        whole = np.asarray(image)
        held = tags.get(TIFF_BITS) == (32,) and whole.min() >= 0 and whole.max() <= 255
        return image.convert("L") if held else image
    levels = np.asarray(image).astype(np.uint16) * np.uint16(16 if tags.get(TIFF_BITS) == (12,) else 1)
    return Image.fromarray(65_535 - levels if tags.get(TIFF_PHOTOMETRIC) == 0 else levels)


def _resize(image: "Image", size: int) -> "Image":
    """Its short side as `stored_short_side` says, its long side cut to MAX_ASPECT_RATIO times as much about
    the centre."""
    from PIL.Image import Resampling

    width, height = image.size
    short = min(width, height)
    wide, high = min(width, MAX_ASPECT_RATIO * short), min(height, MAX_ASPECT_RATIO * short)
    side = stored_short_side(short, size)
    if (side, wide, high) == (short, width, height):
        return image
    left, top = (width - wide) // 2, (height - high) // 2
    new = (round(wide * side / short), round(high * side / short))
    return image.resize(new, Resampling.BILINEAR, (left, top, left + wide, top + high))
