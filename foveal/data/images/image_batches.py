"""Which images are in batch `index` of `epoch`, a pure function of (seed, epoch, index); and how each is
changed, a function of (seed, epoch, image), whatever batch it is in.
"""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from foveal.config import AugmentConfig, ImageConfig
from foveal.core.errors import UserError
from foveal.core.runtime import derived_seed
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.length_buckets import side_by_side
from foveal.data.images.augmentation import boxes, cut_out, flipped, jittered, mixed, resized, window
from foveal.data.images.image_examples import Pictures
from foveal.data.images.test_time_views import COUNTS, views
from foveal.data.text.token_batches import permuted

Rows = NDArray[np.int64]
FINE = 1 << 52
"""Chances are multiples of 1 / FINE."""
TRIES = 10
"""Of finding a part of a picture."""


class HeldOutPictures:
    """Every image exactly once, in their order, its views one after the other: at most `image.batch` of them
    in a batch, but at least those of one image."""

    def __init__(self, pictures: Pictures, image: ImageConfig):
        self._pictures, self._image = pictures, image
        self._scales = [float(scale) for scale in image.scales.split(",")]
        self._rows = max(1, image.batch // (COUNTS[image.views] * len(self._scales)))
        self.per_epoch = -(-len(pictures) // self._rows)

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        """All epochs are alike. Column `source` is (B * views, C, size, size)."""
        start = range(self.per_epoch)[index] * self._rows
        rows = np.arange(start, min(start + self._rows, len(self._pictures)))
        return gather(self._pictures, rows, standardised(self._views(rows), self._pictures))

    def _views(self, rows: Rows) -> Tensor:
        """Levels of 0 to 255."""
        size, image = self._pictures.inputs.size, self._image
        pixels = (torch.from_numpy(self._pictures[row]).permute(2, 0, 1) for row in rows.tolist())
        return torch.cat([views(picture, size, image.views, self._scales) for picture in pixels]).float()


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
        batch = gather(self._pictures, rows, self._changed(rows, epoch))
        if self._augment.mixup:
            chance = np.random.default_rng(derived_seed(self._seed, "mixup", epoch, index))
            share = chance.beta(self._augment.mixup, self._augment.mixup, len(rows))
            columns = mixed(batch.columns, torch.from_numpy(np.maximum(share, 1 - share)).float())
            batch = replace(batch, columns=columns)
        return batch

    def _changed(self, rows: Rows, epoch: int) -> Tensor:
        """The images `rows` as they are seen in an epoch (B, C, size, size)."""
        augment, size = self._augment, self._pictures.inputs.size

        def chances(name: str, count: int) -> Tensor:
            """`count` numbers in [0, 1) for each row (count, B)."""
            numbers = np.add.outer(np.arange(count), rows * count)
            seed = derived_seed(self._seed, "augment", name, epoch)
            return torch.from_numpy(permuted(numbers.ravel(), FINE, seed) / FINE).view(count, -1)

        def places(name: str, count: int) -> Tensor:
            """Two whole numbers below `count` for each row (2, B)."""
            return (chances(name, 2) * count).long()

        if augment.crop == "resized":
            shapes = torch.from_numpy(self._pictures.shapes_of(rows))
            area, ratio = chances("size", 2 * TRIES).chunk(2)
            found = boxes(shapes, area, ratio, *chances("place", 2)).tolist()
            parts = zip(rows.tolist(), found, strict=True)
            seen = [resized(torch.from_numpy(self._pictures[row]), box, size) for row, box in parts]
            levels = torch.stack(seen).float()
        elif augment.crop == "none":
            levels = centres(self._pictures, rows)
        else:
            aside = places("shift", 2 * augment.shift + 1) - augment.shift
            levels = _moved(self._pictures, rows, aside, augment.crop == "reflect")
        if augment.jitter:
            factors = 1 + augment.jitter * (2 * chances("jitter", 3) - 1)
            levels = jittered(levels, *factors.float())
        images = standardised(levels, self._pictures)
        if augment.flip:
            # Every image in turn as it is and mirrored: chance alone shows many the same way again and again
            # (Jordan 2024, 3.6).
            first = permuted(rows, FINE, derived_seed(self._seed, "augment", "flip"))
            images = flipped(images, torch.from_numpy((first + epoch) % 2 == 0))
        if augment.cutout:
            row, column = places("cutout", size)
            images = cut_out(images, row, column, augment.cutout)
        return images


def centres(pictures: Pictures, rows: Rows) -> Tensor:
    """The levels of their centres (B, C, size, size)."""
    pixels = np.stack([pictures.centre(row) for row in rows.tolist()])
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float()


def _moved(pictures: Pictures, rows: Rows, aside: Int[Tensor, "2 B"], mirrored: bool) -> Tensor:
    """The levels of squares so many pixels down and right of the centres (B, C, size, size); beyond a picture
    its mirror image, else the mean colour."""
    size, mean = pictures.inputs.size, np.array(pictures.inputs.statistics.mean, np.float32)
    beyond = None if mirrored else mean
    seen = []
    for row, down, right in zip(rows.tolist(), *aside.tolist(), strict=True):
        picture = pictures[row]
        top, left = ((side - size) // 2 for side in picture.shape[:2])
        seen.append(window(picture, top + down, left + right, size, beyond))
    return torch.from_numpy(np.stack(seen)).permute(0, 3, 1, 2).float()


def standardised(levels: Tensor, pictures: Pictures) -> Tensor:
    """Levels (B, C, H, W) of 0 to 255 by the statistics of the inputs."""
    statistics = pictures.inputs.statistics
    mean, deviation = (
        torch.tensor(numbers)[:, None, None] for numbers in (statistics.mean, statistics.deviation)
    )
    return (levels - mean) / deviation


def gather(pictures: Pictures, rows: Rows, images: Tensor) -> ExampleBatch:
    """The `images` that were made of `rows`, with what belongs to them: labels, texts, or nothing."""
    beside = {name: column for name, column in pictures.columns.items() if name != "picture"}
    columns, lengths = side_by_side(beside, rows)
    tokens = int(lengths["target"].sum()) if "target" in lengths else len(rows)
    return ExampleBatch(torch.from_numpy(rows), {"source": images, **columns}, lengths, tokens)
