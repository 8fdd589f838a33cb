"""Which images are in batch `index` of `epoch`, a pure function of (seed, epoch, index); and how each is
changed, a function of (seed, epoch, image), whatever batch it is in.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foveal.config.sections import AugmentConfig
from foveal.core.errors import UserError
from foveal.core.runtime import derived_seed
from foveal.data.augment import cut_out, flipped, shifted
from foveal.data.batching import ExampleBatch
from foveal.data.images import Pictures
from foveal.data.order import permuted

Rows = NDArray[np.int64]
FINE = 1 << 52
"""Chances are multiples of 1 / FINE."""


class HeldOutPictures:
    """The centre of every image exactly once, in their order, in batches of at most `batch`."""

    def __init__(self, pictures: Pictures, batch: int):
        self._pictures, self._batch = pictures, batch
        self.per_epoch = -(-len(pictures) // batch)

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        """All epochs are alike."""
        start = range(self.per_epoch)[index] * self._batch
        rows = np.arange(start, min(start + self._batch, len(self._pictures)))
        return gather(self._pictures, rows, centres(self._pictures, rows))


class PictureOrder:
    """Every image exactly once an epoch, in random order, each changed as `augment` says.

    The batches of an epoch are of equal size, at most `batch`, or differ by one image where they don't divide
    evenly: a last one of a single image would be no batch to take statistics of.
    """

    def __init__(self, pictures: Pictures, batch: int, augment: AugmentConfig, seed: int):
        if not len(pictures):
            raise UserError("no images: give more, or keep less of them back (data.valid, data.test)")
        self._pictures, self._augment, self._seed = pictures, augment, seed
        self.per_epoch = -(-len(pictures) // batch)

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        index, count = range(self.per_epoch)[index], len(self._pictures)
        places = np.arange(index * count // self.per_epoch, (index + 1) * count // self.per_epoch)
        rows = permuted(places, count, derived_seed(self._seed, "images", epoch))
        return gather(self._pictures, rows, self._changed(rows, epoch))

    def _changed(self, rows: Rows, epoch: int) -> Tensor:
        augment, size = self._augment, self._pictures.inputs.size

        def chance(name: str) -> Tensor:
            """A number in [0, 1) for each row."""
            drawn = permuted(rows, FINE, derived_seed(self._seed, "augment", name, epoch))
            return torch.from_numpy(drawn / FINE)

        def place(name: str, count: int) -> Tensor:
            return (chance(name) * count).long()

        images = centres(self._pictures, rows)
        if augment.crop == "shift":
            reach = 2 * augment.shift + 1
            images = shifted(images, place("top", reach), place("left", reach), augment.shift)
        if augment.flip:
            images = flipped(images, chance("flip") < 0.5)
        if augment.cutout:
            images = cut_out(images, place("row", size), place("column", size), augment.cutout)
        return images


def centres(pictures: Pictures, rows: Rows) -> Tensor:
    """Their centres (B, C, size, size), standardised."""
    return standardised(np.stack([pictures.centre(row) for row in rows.tolist()]), pictures)


def standardised(pixels: NDArray[np.uint8], pictures: Pictures) -> Tensor:
    """Pixels (B, H, W, C) as numbers (B, C, H, W)."""
    statistics = pictures.inputs.statistics
    mean, deviation = (
        torch.tensor(numbers)[:, None, None] for numbers in (statistics.mean, statistics.deviation)
    )
    return (torch.from_numpy(pixels).permute(0, 3, 1, 2).float() - mean) / deviation


def gather(pictures: Pictures, rows: Rows, images: Tensor) -> ExampleBatch:
    """The `images` that were made of `rows`, with their labels where they are known."""
    columns = {"source": images}
    if "label" in pictures.columns:
        columns["label"] = torch.from_numpy(np.asarray(pictures.columns["label"])[rows])
    return ExampleBatch(torch.from_numpy(rows), columns, {}, len(rows))
