"""Images as examples: pixels, standardized when they are seen."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foveal.data.core.examples import Column, Examples
from foveal.data.core.rows import Row
from foveal.data.core.standardize import FloatArray, Statistics
from foveal.data.images.image_decoding import Pixels, upscale, upscaled_shape


@dataclass(frozen=True)
class ImageInput:
    """What a model sees of images: squares of `size` pixels, standardized by the channels' statistics."""

    statistics: Statistics
    size: int

    @property
    def channels(self) -> int:
        return self.statistics.channels


@dataclass(frozen=True)
class ImageExamples(Examples):
    """Column `picture`, the number of each row's picture, and what belongs to it, such as its `label`.

    Small ones are kept as they are: of what is asked for, both sides are at least `processor.size`.
    """

    processor: ImageInput
    unique_images: Sequence[Pixels]

    @classmethod
    def from_data(
        cls, pictures: Iterable[Pixels], processor: ImageInput, columns: Mapping[str, Column]
    ) -> "ImageExamples":
        """One and the same array is kept once."""
        numbers: dict[int, int] = {}
        kept: list[Pixels] = []
        which = []
        for picture in pictures:
            number = numbers.setdefault(id(picture), len(kept))
            if number == len(kept):
                kept.append(picture)
            which.append(number)
        return cls({"picture": np.array(which, np.int64), **columns}, processor, kept)

    def __getitem__(self, row: int) -> Pixels:
        """(H, W, C)"""
        return upscale(self.unique_images[int(self.columns["picture"][row])], self.processor.size)

    def shapes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """(B, 2)"""
        numbers = np.asarray(self.columns["picture"])[rows]
        sides = [self.unique_images[number].shape for number in numbers]
        return np.array([upscaled_shape(side[0], side[1], self.processor.size) for side in sides], np.int64)

    def center_crop(self, row: int) -> Pixels:
        """(size, size, C)"""
        picture, size = self[row], self.processor.size
        top, left = ((side - size) // 2 for side in picture.shape[:2])
        return picture[top : top + size, left : left + size]


def image_statistics(rows: list[Row]) -> Statistics:
    """Those of the channels of all pictures, each of which counts once, whatever is said of it."""
    once = {id(row.fields["picture"]): row.fields["picture"] for row in rows}
    return Statistics.from_data(_pixel_batches([*once.values()]))


def _pixel_batches(pictures: list[Pixels]) -> Iterator[FloatArray]:
    """Those of many pictures (N, C) at a time."""
    many = 256
    for start in range(0, len(pictures), many):
        some = pictures[start : start + many]
        yield np.concatenate([picture.reshape(-1, picture.shape[-1]) for picture in some]).astype(np.float32)
