"""Decode images from the bytes of a file, or from arrays, to upright 8-bit pixels of the size that a model
needs."""

import hashlib
import io
import logging
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveal.data.images.decode_limits import (
    TIFF_BITS,
    frame_count_error,
    has_many_text_chunks,
    image_size_error,
)
from foveal.data.images.pixel_levels import WHITE_LEVELS, Pixels, to_uint8

if TYPE_CHECKING:
    from PIL.Image import Image


class DecodedImage(NamedTuple):
    """The pixels of an image, and a hash of its content."""

    pixels: Pixels
    """A writable array that shares no memory, so that torch can use it."""
    content: str
    """The sha256 of the pixels before resizing, or for a JPEG, which is decoded at a reduced size, of the
    file.

    The hash therefore does not depend on settings.
    """


IMAGE_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
IMAGE_SUFFIXES = (
    ".jpg",
    ".jpeg",
    ".jfif",
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
"""Suffixes of image files. The content of a file decides its format."""
ANIMATED_FORMATS = ("GIF", "PNG", "WEBP")
"""Formats of animations. In other formats, several images are pages or sizes."""
RESIZABLE_MODES = ("L", "LA", "RGB", "RGBA", "I", "F")
"""Modes that can be resized."""
EXIF_TRANSPOSES = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}
"""Maps the orientation in EXIF to the `Image.Transpose` that makes the image upright."""
EXIF_ORIENTATION = 0x0112
TIFF_PHOTOMETRIC = 262
"""A tag of TIFF, which says whether level 0 is white or black."""
MAX_ASPECT_RATIO = 3
"""Largest ratio of the long side to the short side. Longer images are cut."""
HASHED_PIXELS = 1 << 20
"""Pixels of an image that are hashed at a time, so that memory does not hold a second image."""
logging.getLogger("PIL").addHandler(logging.NullHandler())  # or else some readers write to standard error


def stored_short_side(short: int, size: int) -> int:
    """Return the short side at which images are stored for a model that reads `size` x `size` pixels.

    The stored image has the margin of an eighth around the center that evaluation recipes cut off. Smaller
    images are upscaled when they are read.
    """
    return min(short, size * 8 // 7)


def upscaled_shape(height: int, width: int, size: int) -> tuple[int, int]:
    """Return (H, W) with sides of at least `size`, in the same aspect ratio."""
    short = min(height, width)
    side = max(short, size)
    return round(height * side / short), round(width * side / short)


def upscale(pixels: Pixels, size: int) -> Pixels:
    """Resize an image so that its short side is at least `size`."""
    from PIL import Image

    height, width, channels = pixels.shape
    shape = upscaled_shape(height, width, size)
    if shape == (height, width):
        return pixels
    image = Image.fromarray(pixels[..., 0] if channels == 1 else pixels)
    large = image.resize(shape[::-1], Image.Resampling.BILINEAR)
    return np.array(large).reshape(*shape, channels)


def decode_image(content: bytes, size: int, channels: int) -> DecodedImage | str:
    """Decode the image (H, W, channels) of a file, with a short side of at most `size * 8 // 7`.

    The first frame of an animation is decoded. Transparent pixels become white, and 16 bits become 8. An
    image whose short side is already at most `size * 8 // 7` is not resized, so its pixels stay the same.
    Images that would take too much memory are rejected before decoding. Return the reason if the file can't
    be used.
    """
    images = _decode(content, size, channels, None)
    return images if isinstance(images, str) else images[0]


def decode_animation(
    content: bytes, size: int, channels: int, max_frames: int
) -> list[DecodedImage | str] | str:
    """Decode each frame of an animation (GIF, PNG, WEBP) with at most `max_frames` frames.

    A frame that can't be decoded is a reason instead, and ends the list, because later frames depend on it.
    """
    return _decode(content, size, channels, max_frames)


def _decode(
    content: bytes, size: int, channels: int, max_frames: int | None
) -> list[DecodedImage | str] | str:
    """Decode the first image, or all frames if `max_frames` is not None."""
    from PIL import Image, UnidentifiedImageError

    if not content:
        return "empty; get the file again"
    if has_many_text_chunks(content):
        return "too many text chunks in it; save the image without them"
    images: list[DecodedImage | str] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(content), formats=IMAGE_FORMATS) as image:
                if error := image_size_error(image, content, size):
                    return error
                count = (
                    1
                    if max_frames is None or image.format not in ANIMATED_FORMATS
                    else getattr(image, "n_frames", 1)
                )
                if max_frames is not None and (error := frame_count_error(image.size, count, max_frames)):
                    return error
                for index in range(count):
                    image.seek(index)
                    image.load()
                    images.append(
                        _resize_and_convert(_normalize_tiff(_apply_orientation(image), image), size, channels)
                    )
                if image.format in ("JPEG", "MPO") and isinstance(images[0], DecodedImage):
                    return [DecodedImage(images[0].pixels, hashlib.sha256(content).hexdigest())]
                return images
    except UnidentifiedImageError:
        return f"not an image that can be read ({', '.join(IMAGE_FORMATS)}); convert it to one of them"
    except Image.DecompressionBombError:
        return "far too many pixels; make it smaller"
    except Exception as error:  # many kinds, of Pillow's readers
        reason = (
            f"damaged or cut off ({(str(error) or type(error).__name__).splitlines()[0]}); get the file again"
        )
        return [*images, reason] if images else reason


def image_from_array(values: NDArray[Any], size: int, channels: int) -> DecodedImage | str:
    """Convert an array (H, W), (H, W, 1), (H, W, 3) or, with transparency, (H, W, 4) as
    `decode_image` does."""
    from PIL import Image

    values = values[..., 0] if values.shape[2:] == (1,) else values
    if values.ndim not in (2, 3) or values.shape[2:] not in ((), (3,), (4,)) or not values.size:
        return (
            f"an array {values.shape}; (height, width), or with 1, 3 or 4 channels is needed; put the "
            "channels of images last: numpy.moveaxis(x, 1, -1)"
        )
    levels = to_uint8(values)
    if isinstance(levels, str):
        return levels
    if levels.shape == (size, size) and channels == 1:  # a short cut, since clips have many frames
        content = hashlib.sha256(f"{(size, size, 1)}".encode() + levels.tobytes())
        return DecodedImage(levels[..., None].copy(), content.hexdigest())
    return _resize_and_convert(Image.fromarray(levels), size, channels)


def _resize_and_convert(image: "Image", size: int, channels: int) -> DecodedImage | str:
    """Resize a decoded image (antialiased), with white in place of transparency."""
    if image.mode.startswith("I;"):
        image = image.convert("I")
    elif image.mode not in RESIZABLE_MODES or "transparency" in image.info:
        image = image.convert("RGBA" if image.has_transparency_data else "L" if image.mode == "1" else "RGB")
    small = _composite_on_white(_resize(image, size))
    if isinstance(small, str):
        return small
    mode = "L" if channels == 1 else "RGB"
    small = small if small.mode == mode else small.convert(mode)
    return DecodedImage(np.array(small).reshape(*small.size[::-1], channels), _pixel_hash(image))


def _composite_on_white(image: "Image") -> "Image | str":
    """Convert an image to 8 bits with white in place of transparency, or return the reason why it can't be
    converted."""
    from PIL import Image

    if image.mode in ("I", "F"):
        levels = to_uint8(np.asarray(image), WHITE_LEVELS[-1] if image.mode == "I" else None)
        return levels if isinstance(levels, str) else Image.fromarray(levels)
    if image.mode in ("LA", "RGBA"):
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")
    return image


def _pixel_hash(image: "Image") -> str:
    """Return the sha256 of the pixels, with white in place of transparency. With more than 8 bits, pixels are
    hashed unchanged."""
    (width, height), exact = image.size, image.mode in ("I", "F")
    rows = max(1, HASHED_PIXELS // width)
    digest = hashlib.sha256(f"{(height, width, 1 if exact or image.mode == 'L' else 3)}".encode())
    for top in range(0, height, rows):
        strip = image.crop((0, top, width, min(height, top + rows)))
        plain = strip if exact else _composite_on_white(strip)
        digest.update(plain.tobytes())  # type: ignore[union-attr]  # 8 bits are never refused
    return digest.hexdigest()


def _apply_orientation(image: "Image") -> "Image":
    """Rotate an image upright by its EXIF orientation, if that can be read."""
    from PIL.Image import Transpose

    try:
        transpose = EXIF_TRANSPOSES.get(image.getexif().get(EXIF_ORIENTATION, 1))
    except Exception:  # many kinds, of damaged EXIF: the image itself can be read
        transpose = None
    return image if transpose is None else image.transpose(Transpose(transpose))


def _normalize_tiff(image: "Image", opened: Any) -> "Image":
    """Convert a TIFF of 12 bits to 16 bits, invert it if zero is white, and convert 32 bits to 8 if they fit.

    Pillow leaves all three unchanged. `opened` is the image as Pillow opened it, with its tags.
    """
    from PIL import Image

    if opened.format != "TIFF" or not opened.mode.startswith("I"):
        return image
    tags = opened.tag_v2
    if opened.mode == "I":
        values = np.asarray(image)
        fits = tags.get(TIFF_BITS) == (32,) and values.min() >= 0 and values.max() <= 255
        return image.convert("L") if fits else image
    levels = np.asarray(image).astype(np.uint16) * np.uint16(16 if tags.get(TIFF_BITS) == (12,) else 1)
    return Image.fromarray(65_535 - levels if tags.get(TIFF_PHOTOMETRIC) == 0 else levels)


def _resize(image: "Image", size: int) -> "Image":
    """Resize the short side to `stored_short_side`.

    The long side is cut at the center to at most MAX_ASPECT_RATIO times the short side.
    """
    from PIL.Image import Resampling

    width, height = image.size
    short = min(width, height)
    cut_width, cut_height = min(width, MAX_ASPECT_RATIO * short), min(height, MAX_ASPECT_RATIO * short)
    side = stored_short_side(short, size)
    if (side, cut_width, cut_height) == (short, width, height):
        return image
    left, top = (width - cut_width) // 2, (height - cut_height) // 2
    new_size = (round(cut_width * side / short), round(cut_height * side / short))
    return image.resize(new_size, Resampling.BILINEAR, (left, top, left + cut_width, top + cut_height))
