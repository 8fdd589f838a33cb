"""Images as examples: 8-bit pixels, which are standardized in batches."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.data.core.columns import ColumnsWriter
from foveal.data.core.examples import Column, Examples, distinct
from foveal.data.core.hash_split import text_hash
from foveal.data.core.rows import Row
from foveal.data.core.standardize import FloatArray, Statistics
from foveal.data.images.image_decoding import upscale, upscaled_shape
from foveal.data.images.pixel_levels import Pixels

PIXELS = "pixels"
"""The column of different images in files."""


@dataclass(frozen=True)
class ImageProcessor:
    """The processor of images: squares of `size` pixels, standardized by the channels' statistics."""

    statistics: Statistics
    size: int

    @property
    def channels(self) -> int:
        return self.statistics.channels

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class ImageExamples(Examples):
    """Examples with the column `picture`, the index of each row's image in `unique_images`.

    Other columns belong to the target, such as `label`. Small images are stored at their own size, and
    returned with sides of at least `processor.size`.
    """

    is_grouped = False
    processor: ImageProcessor
    unique_images: Sequence[Pixels]

    @classmethod
    def from_data(
        cls, pictures: Iterable[Pixels], processor: ImageProcessor, columns: Mapping[str, Column]
    ) -> "ImageExamples":
        """Return the examples of some images. An array that occurs several times is stored once."""
        unique, places = distinct(pictures)
        return cls({"picture": places, **columns}, processor, unique)

    @property
    def sizes(self) -> dict[str, int]:
        return {"images": len(self.unique_images)}

    def write(self, writer: ColumnsWriter, contents: Sequence[str]) -> None:
        picture = np.asarray(self.columns["picture"])
        first_rows = np.unique(picture, return_index=True)[1]
        places = writer.write_once(PIXELS, [contents[row] for row in first_rows], self.unique_images)
        writer.write({**self.columns, "picture": places[picture]})

    def in_files(self, columns: Mapping[str, Any]) -> "ImageExamples":
        own = {name: column for name, column in columns.items() if name != PIXELS}
        return replace(self, columns=own, unique_images=columns.get(PIXELS, ()))

    def __getitem__(self, row: int) -> Pixels:
        """Return the image of a row (H, W, C)."""
        return upscale(self.unique_images[int(self.columns["picture"][row])], self.processor.size)

    def shapes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the heights and widths of the images of rows (B, 2)."""
        indices = np.asarray(self.columns["picture"])[rows]
        sides = [self.unique_images[index].shape for index in indices]
        return np.array([upscaled_shape(side[0], side[1], self.processor.size) for side in sides], np.int64)

    def center_crop(self, row: int) -> Pixels:
        """Return the center of the image of a row (size, size, C)."""
        pixels, size = self[row], self.processor.size
        top, left = ((side - size) // 2 for side in pixels.shape[:2])
        return pixels[top : top + size, left : left + size]


def image_statistics(rows: Sequence[Row]) -> Statistics:
    """Return the channel statistics of all images. An image with several rows counts once."""
    return Statistics.from_data(_pixel_batches(_different_pictures(rows)))


def _different_pictures(rows: Sequence[Row]) -> Iterator[Pixels]:
    seen = set[int]()
    for row in rows:
        content = text_hash(row.fields["content"])
        if content not in seen:
            seen.add(content)
            yield row.fields["picture"]


def _pixel_batches(pictures: Iterator[Pixels]) -> Iterator[FloatArray]:
    """Yield the pixels (N, C) of 256 images at a time."""
    while batch := [*islice(pictures, 256)]:
        yield np.concatenate([pixels.reshape(-1, pixels.shape[-1]) for pixels in batch]).astype(np.float32)
