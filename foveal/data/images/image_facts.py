"""Cheap facts about labeled images: how many, which labels, how large, and whether in color.

Only the headers of a few images are read, and no pixels.
"""

import io
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveal.data.core.rows import Row, SkippedRow
from foveal.data.files.data_part import DataPart
from foveal.data.files.file_bytes import read_file_bytes
from foveal.data.files.utf8 import AnyPath
from foveal.data.images.decode_limits import has_many_text_chunks
from foveal.data.images.image_decoding import IMAGE_FORMATS
from foveal.data.images.image_files import labeled_images

SAMPLED_IMAGES, SAMPLED_PER_LABEL = 64, 4
"""Images at most whose headers are read: of all labels, and of each."""
GRAY_MODES = ("1", "L", "LA", "I", "F", "I;16", "I;16B", "I;16L", "I;16N")
"""Pillow's modes without colors."""


class ImageFacts(NamedTuple):
    """Facts about labeled images. `side` and `color` are those of a sample."""

    rows: int
    labels: frozenset[str]
    side: int
    """The median of the shorter sides, in pixels; 0 if no header can be read."""
    color: bool
    """Whether an image has colors."""

    @property
    def has_characters(self) -> bool:
        """Return whether all labels are single characters, as those of digits and letters are."""
        return all(len(label) == 1 for label in self.labels)


def image_facts(
    part: DataPart,
    label: str,
    most: int,
    read: Callable[[DataPart, str], Iterator[Row | SkippedRow]] = labeled_images,
) -> ImageFacts:
    """Return facts about the first `most` images. `label` is the column of a table.

    `read` reads the images with their labels, or with their texts in place of labels.

    Raises: UserError: no image can be used.
    """
    rows, counts, shapes = 0, Counter[str](), list[tuple[int, bool]]()
    for row in islice(read(part, label), most):
        if isinstance(row, Row):
            name = row.fields["label"]
            rows, counts[name] = rows + 1, counts[name] + 1
            if counts[name] <= SAMPLED_PER_LABEL and len(shapes) < SAMPLED_IMAGES:
                shapes += image_shape(row.fields["image"])
    side = round(median(side for side, _ in shapes)) if shapes else 0
    return ImageFacts(rows, frozenset(counts), side, any(color for _, color in shapes))


def image_shape(image: AnyPath | bytes | NDArray[Any]) -> list[tuple[int, bool]]:
    """Return the shorter side of an image and whether it has colors, by its header; empty if it can't be
    read."""
    from PIL import Image

    if isinstance(image, np.ndarray):
        return [(min(image.shape[:2]), image.shape[2:] in ((3,), (4,)))] if image.ndim > 1 else []
    content = image if isinstance(image, bytes) else read_file_bytes(image)
    if isinstance(content, str) or has_many_text_chunks(content):
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(content), formats=IMAGE_FORMATS) as opened:
                return [(min(opened.size), opened.mode not in GRAY_MODES)]
    except Exception:  # many kinds, of Pillow's readers: the reader of the data reports the error
        return []
