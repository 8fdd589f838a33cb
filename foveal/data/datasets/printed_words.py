"""Pictures that are computed: English words printed in several fonts, seen askew and through noise.

The fonts are those that matplotlib brings, the words those of Python's own documentation. What is drawn by
chance is the same on every machine; the last bit of a pixel is a matter of Pillow's version.
"""

import io
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8
from numpy.random import RandomState

from foveal.core.log import Log, log_progress

IMAGE_SIDE, OVERSAMPLING = 64, 2
"""Pixels of a picture, and parts of a pixel that are drawn."""
FONTS = {
    "train": (
        *("DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSansMono", "DejaVuSansMono-Bold"),
        *("DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-Italic"),
        *("STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic"),
    ),
    "valid": ("DejaVuSansMono-Oblique", "DejaVuSerif-BoldItalic", "STIXGeneralBolIta"),
    "test": ("cmr10", "cmb10", "cmss10", "cmtt10"),
}
"""No font is in two parts; those of the test, Computer Modern, are of another family."""
IMAGE_COUNTS = {"train": 20_000, "valid": 500, "test": 1_000}
WORD_LENGTHS, MIN_COUNT = (3, 7), 3
"""From the shortest to the longest word, and how often it has to be in the documentation."""
FONT_SIZES, MAX_WORD_WIDTH = (13.0, 19.0), 0.8
"""Pixels of a letter's line, and the share of the picture that a word fills at most, or is made smaller."""
MAX_CORNER_SHIFT, MAX_VERTICAL_SHIFT = 0.06, 0.15
"""Shares of the side by which a corner is moved at most, and the word up or down."""
INK_LEVELS, PAPER_LEVELS, NOISE_STD = (0.0, 80.0), (170.0, 255.0), (2.0, 12.0)
"""Levels, and the deviation of each pixel's noise."""
JPEG_QUALITY = 85


def printed_words(log: Log) -> Iterator[tuple[str, bytes]]:
    """The files of the parts: Parquet with the columns `image`, a JPEG, and `text`."""
    import pyarrow
    import pyarrow.parquet

    known = documentation_words()
    for seed, (part, fonts) in enumerate(FONTS.items()):
        chance, found = RandomState(seed), io.BytesIO()
        texts = [known[int(len(known) * chance.random_sample())] for _ in range(IMAGE_COUNTS[part])]
        images = [
            {"bytes": _encode_jpeg(render_word(text, fonts[number % len(fonts)], chance))}
            for number, text in enumerate(log_progress(texts, len(texts), f"pictures ({part})", log))
        ]
        pyarrow.parquet.write_table(pyarrow.table({"image": images, "text": texts}), found)
        yield f"{part}.parquet", found.getvalue()


def documentation_words() -> list[str]:
    """The words in small letters that Python's documentation has often, in order."""
    from pydoc_data.topics import topics

    least, most = WORD_LENGTHS
    words = re.compile(rf"(?<=[ \n(])[a-z]{{{least},{most}}}(?=[ \n,.;:)])")
    counts = Counter(word for text in topics.values() for word in words.findall(text))
    return sorted(word for word, count in counts.items() if count >= MIN_COUNT)


def render_word(word: str, font: str, rng: RandomState) -> UInt8[np.ndarray, "H W"]:
    """`word` about the middle of a picture, in perspective: each corner is where another one was seen."""
    from PIL import Image, ImageDraw

    def between(least: float, most: float) -> float:
        return least + (most - least) * float(rng.random_sample())

    side, size = IMAGE_SIDE * OVERSAMPLING, OVERSAMPLING * between(*FONT_SIZES)
    size *= min(1.0, MAX_WORD_WIDTH * side / _load_font(font, round(size)).getlength(word))
    ink, paper = int(between(*INK_LEVELS)), int(between(*PAPER_LEVELS))
    image = Image.new("L", (side, side), paper)
    place = (side / 2, side / 2 + between(-MAX_VERTICAL_SHIFT, MAX_VERTICAL_SHIFT) * side)
    ImageDraw.Draw(image).text(place, word, ink, _load_font(font, round(size)), anchor="mm")
    corners = np.array([(0, 0), (side, 0), (side, side), (0, side)], float)
    moved = corners + MAX_CORNER_SHIFT * side * (2 * rng.random_sample((4, 2)) - 1)
    seen = image.transform(
        (side, side),
        Image.Transform.PERSPECTIVE,
        perspective_coefficients(corners, moved).tolist(),
        Image.Resampling.BICUBIC,
        fillcolor=paper,
    )
    levels = np.asarray(seen.reduce(OVERSAMPLING), float)
    levels += between(*NOISE_STD) * rng.standard_normal(levels.shape)
    return np.rint(levels.clip(0, 255)).astype(np.uint8)


@cache
def _load_font(font: str, size: int) -> Any:
    """A font of Pillow's."""
    import matplotlib
    from PIL import ImageFont

    return ImageFont.truetype(Path(matplotlib.get_data_path(), "fonts/ttf", f"{font}.ttf"), size)


def perspective_coefficients(
    places: Float[np.ndarray, "P 2"], sources: Float[np.ndarray, "P 2"]
) -> Float[np.ndarray, " N"]:
    """a .. h of the plane's map `((a x + b y + c) / (g x + h y + 1), (d x + e y + f) / (g x + h y + 1))` that
    takes each of the places to its source: four points are eight equations."""
    rows = []
    for (x, y), (u, v) in zip(places, sources, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    return np.linalg.solve(np.array(rows), sources.ravel())


def _encode_jpeg(levels: UInt8[np.ndarray, "H W"]) -> bytes:
    from PIL import Image

    content = io.BytesIO()
    Image.fromarray(levels).save(content, "JPEG", quality=JPEG_QUALITY)
    return content.getvalue()
