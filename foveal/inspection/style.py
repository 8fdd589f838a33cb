"""The look of all pictures: the palette, figures, labels, small images, and their PNG bytes.

Matplotlib draws figures with axes or text in any script; Pillow draws sheets of small images. Matplotlib is
imported only when a figure is made, because its import takes longer than most commands.
"""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw, ImageFont

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties

SERIES_COLORS = ("#1f4e8c", "#c2410c", "#4d7c0f", "#7c3aed", "#0f766e", "#a16207")
"""The colors of lines and bars side by side, in this order."""
MUTED_COLOR, EDGE_COLOR = "#52606d", "#9aa5b1"
"""The colors of captions and units, and of a frame."""
CORRECT_COLOR, INCORRECT_COLOR = "#15803d", "#b45309"
HIGHLIGHT_COLOR = "#e11d48"
"""The color of marks over an image or a map: a path, a window."""
ROLE_COLORS = {
    "plain": "black",
    "muted": MUTED_COLOR,
    "correct": CORRECT_COLOR,
    "incorrect": INCORRECT_COLOR,
    "highlight": HIGHLIGHT_COLOR,
}
"""The colors of captions and marks, by what they mean."""
SEQUENTIAL_MAP, DIVERGING_MAP = "Blues", "RdBu_r"
"""The color maps of numbers from a lowest value, and of numbers around 0: red is positive."""
LUMINANCE_WEIGHTS, MIDDLE_LUMINANCE = (0.2126, 0.7152, 0.0722), 0.179
"""The part of red, green and blue in the luminance of a color, and that on which black and white can be read
equally well."""
DPI = 130
"""Pixels to an inch of figures."""
MAX_HEIGHT = 200.0
"""Inches of the tallest picture."""
FONT_SIZE = 11
"""Pixels of the letters on sheets of small images."""
FONTS = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "WenQuanYi Zen Hei",
    "PingFang SC",
    "Hiragino Sans",
    "Microsoft YaHei",
    "Yu Gothic",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Arial Unicode MS",
)
"""Fonts that are searched for a letter, in this order; a letter in none of them is drawn as a box."""


def series_color(number: int) -> str:
    """Return the color of series `number`; colors repeat after the last."""
    return SERIES_COLORS[number % len(SERIES_COLORS)]


def letters_on(fill: Float[np.ndarray, " C"]) -> str:
    """Return black or white, whichever has more contrast on a color of red, green and blue from 0 to 1.

    The contrast is at least 4.58 on every color (relative luminance: WCAG 2.2).
    """
    linear = np.where(fill <= 0.04045, fill / 12.92, ((fill + 0.055) / 1.055) ** 2.4)[:3]
    return "black" if linear @ LUMINANCE_WEIGHTS > MIDDLE_LUMINANCE else "white"


def new_figure(width: float, height: float, layout: Literal["constrained"] | None = None) -> "Figure":
    """Return an empty figure. Width and height are in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout=layout)


@contextmanager
def missing_letters_allowed() -> Iterator[None]:
    """Return a context in which measuring text causes no warning about letters that no installed font has."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def text_font(size: float) -> "FontProperties":
    """Return a font for text in any script."""
    from matplotlib.font_manager import FontProperties

    return FontProperties(family=_installed_fonts(), size=size)


@cache
def _installed_fonts() -> list[str]:
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return [name for name in FONTS if name in installed]


def cut_text(text: str, max_length: int) -> str:
    """Return at most `max_length` characters of a text. A shortened text ends with an ellipsis."""
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


def to_image(pixels: UInt8[np.ndarray, "H W C"]) -> Image.Image:
    """Return the pixels as a Pillow image. A single channel is gray."""
    return Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)


def resize_to_side(image: Image.Image, side: int) -> Image.Image:
    """Resize the image so that its longer side has `side` pixels. Enlarging does not interpolate."""
    scale = side / max(image.size)
    width, height = (max(1, round(scale * length)) for length in image.size)
    return image.resize((width, height), Image.Resampling.NEAREST if scale > 1 else Image.Resampling.BOX)


def draw_text(
    sheet: Image.Image,
    position: tuple[int, int],
    text: str,
    color: str = "black",
    max_width: int | None = None,
) -> None:
    """Write text on a sheet, with its upper left corner at `position`, cut to `max_width` pixels."""
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(FONT_SIZE)
    while text and max_width is not None and pen.textlength(text, font) > max_width:
        text = text[:-1]
    pen.text(position, text, color, font)


def new_sheet(width: int, height: int) -> Image.Image:
    """Return a white image to paste small images on. Width and height are in pixels."""
    return Image.new("RGB", (width, height), "white")


def image_png(image: Image.Image, optimize: bool = False) -> bytes:
    """Return the PNG of an image; `optimize` makes it smaller and takes longer."""
    content = io.BytesIO()
    image.save(content, "PNG", optimize=optimize)
    return content.getvalue()
