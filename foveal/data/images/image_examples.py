"""Images as examples: 8-bit pixels, which are standardized in batches."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foveal.data.core.examples import Column, Examples
from foveal.data.core.rows import Row
from foveal.data.core.standardize import FloatArray, Statistics
from foveal.data.images.image_decoding import upscale, upscaled_shape
from foveal.data.images.pixel_levels import Pixels


@dataclass(frozen=True)
class ImageProcessor:
    """The processor of images: squares of `size` pixels, standardized by the channels' statistics."""

    statistics: Statistics
    size: int

    @property
    def channels(self) -> int:
        return self.statistics.channels


@dataclass(frozen=True)
class ImageExamples(Examples):
    """Examples with the column `picture`, the index of each row's image in `unique_images`.

    Other columns belong to the target, such as `label`. Small images are stored at their own size, and
    returned with sides of at least `processor.size`.
    """

    processor: ImageProcessor
    unique_images: Sequence[Pixels]

    @classmethod
    def from_data(
        cls, pictures: Iterable[Pixels], processor: ImageProcessor, columns: Mapping[str, Column]
    ) -> "ImageExamples":
        """Return the examples of some images. An array that occurs several times is stored once."""
        index_by_id: dict[int, int] = {}
        unique: list[Pixels] = []
        indices = []
        for picture in pictures:
            index = index_by_id.setdefault(id(picture), len(unique))
            if index == len(unique):
                unique.append(picture)
            indices.append(index)
        return cls({"picture": np.array(indices, np.int64), **columns}, processor, unique)

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
    unique = {id(row.fields["picture"]): row.fields["picture"] for row in rows}
    return Statistics.from_data(_pixel_batches([*unique.values()]))


def _pixel_batches(pictures: list[Pixels]) -> Iterator[FloatArray]:
    """Yield the pixels (N, C) of 256 images at a time."""
    batch_size = 256
    for start in range(0, len(pictures), batch_size):
        batch = pictures[start : start + batch_size]
        yield np.concatenate([pixels.reshape(-1, pixels.shape[-1]) for pixels in batch]).astype(np.float32)
