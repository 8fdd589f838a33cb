"""Computed images: English words printed in several fonts, in perspective and with noise.

The fonts come with matplotlib, and the words are from Python's documentation. The random numbers are the same
on every machine. The last bit of a pixel depends on Pillow's version.
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

from foveal.core.extras import require
from foveal.core.log import Log, log_progress

IMAGE_SIDE, OVERSAMPLING = 64, 2
"""Side of an image in pixels, and factor of the size at which it is drawn."""
FONTS = {
    "train": (
        *("DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSansMono", "DejaVuSansMono-Bold"),
        *("DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-Italic"),
        *("STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic"),
    ),
    "valid": ("DejaVuSansMono-Oblique", "DejaVuSerif-BoldItalic", "STIXGeneralBolIta"),
    "test": ("cmr10", "cmb10", "cmss10", "cmtt10"),
}
"""No font is in two splits. The fonts of the test, Computer Modern, are of another family."""
IMAGE_COUNTS = {"train": 20_000, "valid": 500, "test": 1_000}
WORD_LENGTHS, MIN_COUNT = (3, 7), 3
"""Lengths of the shortest and the longest word, and smallest count in the documentation."""
FONT_SIZES, MAX_WORD_WIDTH = (13.0, 19.0), 0.8
"""Font sizes in pixels, and largest fraction of the image's width for a word.

Wider words are made smaller.
"""
MAX_CORNER_SHIFT, MAX_VERTICAL_SHIFT = 0.06, 0.15
"""Largest shifts of a corner, and of the word up or down, as fractions of the side."""
INK_LEVELS, PAPER_LEVELS, NOISE_STD = (0.0, 80.0), (170.0, 255.0), (2.0, 12.0)
"""Levels of ink and paper, and standard deviations of each pixel's noise."""
JPEG_QUALITY = 85


def printed_words(log: Log) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the splits: Parquet with the columns `image`, a JPEG, and `text`."""
    require("pyarrow", "the data set printed-words")
    import pyarrow
    import pyarrow.parquet

    words = documentation_words()
    for seed, (split, fonts) in enumerate(FONTS.items()):
        rng, content = RandomState(seed), io.BytesIO()
        texts = [words[int(len(words) * rng.random_sample())] for _ in range(IMAGE_COUNTS[split])]
        images = [
            {"bytes": _encode_jpeg(render_word(text, fonts[index % len(fonts)], rng))}
            for index, text in enumerate(log_progress(texts, len(texts), f"images ({split})", log))
        ]
        pyarrow.parquet.write_table(pyarrow.table({"image": images, "text": texts}), content)
        yield f"{split}.parquet", content.getvalue()


def documentation_words() -> list[str]:
    """Return the frequent lower-case words of Python's documentation, sorted."""
    from pydoc_data.topics import topics

    shortest, longest = WORD_LENGTHS
    words = re.compile(rf"(?<=[ \n(])[a-z]{{{shortest},{longest}}}(?=[ \n,.;:)])")
    counts = Counter(word for text in topics.values() for word in words.findall(text))
    return sorted(word for word, count in counts.items() if count >= MIN_COUNT)


def render_word(word: str, font: str, rng: RandomState) -> UInt8[np.ndarray, "H W"]:
    """Draw `word` near the center of an image, in perspective: each corner is moved at random."""
    from PIL import Image, ImageDraw

    def uniform(smallest: float, largest: float) -> float:
        return smallest + (largest - smallest) * float(rng.random_sample())

    side, size = IMAGE_SIDE * OVERSAMPLING, OVERSAMPLING * uniform(*FONT_SIZES)
    size *= min(1.0, MAX_WORD_WIDTH * side / _load_font(font, round(size)).getlength(word))
    ink, paper = int(uniform(*INK_LEVELS)), int(uniform(*PAPER_LEVELS))
    image = Image.new("L", (side, side), paper)
    center = (side / 2, side / 2 + uniform(-MAX_VERTICAL_SHIFT, MAX_VERTICAL_SHIFT) * side)
    ImageDraw.Draw(image).text(center, word, ink, _load_font(font, round(size)), anchor="mm")
    corners = np.array([(0, 0), (side, 0), (side, side), (0, side)], float)
    moved = corners + MAX_CORNER_SHIFT * side * (2 * rng.random_sample((4, 2)) - 1)
    transformed = image.transform(
        (side, side),
        Image.Transform.PERSPECTIVE,
        perspective_coefficients(corners, moved).tolist(),
        Image.Resampling.BICUBIC,
        fillcolor=paper,
    )
    levels = np.asarray(transformed.reduce(OVERSAMPLING), float)
    levels += uniform(*NOISE_STD) * rng.standard_normal(levels.shape)
    return np.rint(levels.clip(0, 255)).astype(np.uint8)


@cache
def _load_font(font: str, size: int) -> Any:
    """Load a font for Pillow."""
    import matplotlib
    from PIL import ImageFont

    return ImageFont.truetype(Path(matplotlib.get_data_path(), "fonts/ttf", f"{font}.ttf"), size)


def perspective_coefficients(
    points: Float[np.ndarray, "P 2"], images: Float[np.ndarray, "P 2"]
) -> Float[np.ndarray, " N"]:
    """Return a .. h of the projective map that takes each point to its image.

    The map is `((a x + b y + c) / (g x + h y + 1), (d x + e y + f) / (g x + h y + 1))`. Four points give
    eight equations.
    """
    rows = []
    for (x, y), (u, v) in zip(points, images, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    return np.linalg.solve(np.array(rows), images.ravel())


def _encode_jpeg(levels: UInt8[np.ndarray, "H W"]) -> bytes:
    from PIL import Image

    content = io.BytesIO()
    Image.fromarray(levels).save(content, "JPEG", quality=JPEG_QUALITY)
    return content.getvalue()
