"""Which images are in batch `index` of `epoch`, a pure function of (seed, epoch, index); and how each is
changed, a function of (seed, epoch, image), whatever batch it is in.
"""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from foveal.config import AugmentConfig, ImageConfig
from foveal.core.errors import UserError
from foveal.core.runtime import derived_seed
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import RowIndices
from foveal.data.core.length_buckets import collate_columns
from foveal.data.core.shuffle import permute_indices
from foveal.data.images.augmentation import (
    color_jitter,
    crop_with_padding,
    cutout,
    horizontal_flip,
    mixup,
    random_crop_boxes,
    resized_crop,
)
from foveal.data.images.image_examples import ImageExamples
from foveal.data.images.test_time_views import VIEW_COUNTS, make_views

PROBABILITY_STEPS = 1 << 52
"""Chances are multiples of 1 / PROBABILITY_STEPS."""
CROP_TRIES = 10
"""Of finding a part of a picture."""


class ImageEvalBatches:
    """Every image exactly once, in their order, its views one after the other: at most `image.batch` of them
    in a batch, but at least those of one image."""

    def __init__(self, examples: ImageExamples, image: ImageConfig):
        self._examples, self._image = examples, image
        self._scales = [float(scale) for scale in image.tta_scales.split(",")]
        self._rows = max(1, image.batch_size // (VIEW_COUNTS[image.tta] * len(self._scales)))
        self.per_epoch = -(-len(examples) // self._rows)

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        """All epochs are alike. Column `source` is (B * views, C, size, size)."""
        start = range(self.per_epoch)[index] * self._rows
        rows = np.arange(start, min(start + self._rows, len(self._examples)))
        return collate_images(self._examples, rows, standardize_images(self._views(rows), self._examples))

    def _views(self, rows: RowIndices) -> Tensor:
        """Levels of 0 to 255."""
        size, image = self._examples.processor.size, self._image
        pixels = (torch.from_numpy(self._examples[row]).permute(2, 0, 1) for row in rows.tolist())
        return torch.cat([make_views(picture, size, image.tta, self._scales) for picture in pixels]).float()


class ImageTrainBatches:
    """Every image exactly once an epoch, in random order, each changed as `augment` says.

    The batches of an epoch are of equal size, at most `batch`, or differ by one image where they don't divide
    evenly: a last one of a single image would be no batch to take statistics of.
    """

    def __init__(self, examples: ImageExamples, batch: int, augment: AugmentConfig, seed: int):
        if not len(examples):
            raise UserError(
                "no images: give more, or hold fewer of them out (data.valid_fraction, data.test_fraction)"
            )
        self._examples, self._augment, self._seed = examples, augment, seed
        self.per_epoch = -(-len(examples) // batch)

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        index, count = range(self.per_epoch)[index], len(self._examples)
        places = np.arange(index * count // self.per_epoch, (index + 1) * count // self.per_epoch)
        rows = permute_indices(places, count, derived_seed(self._seed, "images", epoch))
        batch = collate_images(self._examples, rows, self._augmented(rows, epoch))
        if self._augment.mixup:
            chance = np.random.default_rng(derived_seed(self._seed, "mixup", epoch, index))
            share = chance.beta(self._augment.mixup, self._augment.mixup, len(rows))
            columns = mixup(batch.columns, torch.from_numpy(np.maximum(share, 1 - share)).float())
            batch = replace(batch, columns=columns)
        return batch

    def _augmented(self, rows: RowIndices, epoch: int) -> Tensor:
        """The images `rows` as they are seen in an epoch (B, C, size, size)."""
        augment, size = self._augment, self._examples.processor.size

        def chances(name: str, count: int) -> Tensor:
            """`count` numbers in [0, 1) for each row (count, B)."""
            numbers = np.add.outer(np.arange(count), rows * count)
            seed = derived_seed(self._seed, "augment", name, epoch)
            return torch.from_numpy(
                permute_indices(numbers.ravel(), PROBABILITY_STEPS, seed) / PROBABILITY_STEPS
            ).view(count, -1)

        def places(name: str, count: int) -> Tensor:
            """Two whole numbers below `count` for each row (2, B)."""
            return (chances(name, 2) * count).long()

        if augment.crop == "random-resized":
            shapes = torch.from_numpy(self._examples.shapes(rows))
            area, ratio = chances("size", 2 * CROP_TRIES).chunk(2)
            found = random_crop_boxes(shapes, area, ratio, *chances("place", 2)).tolist()
            parts = zip(rows.tolist(), found, strict=True)
            seen = [resized_crop(torch.from_numpy(self._examples[row]), box, size) for row, box in parts]
            levels = torch.stack(seen).float()
        elif augment.crop == "none":
            levels = center_crops(self._examples, rows)
        else:
            aside = places("shift", 2 * augment.padding + 1) - augment.padding
            levels = _shifted_crops(self._examples, rows, aside, augment.crop == "reflect-pad")
        if augment.color_jitter:
            factors = 1 + augment.color_jitter * (2 * chances("jitter", 3) - 1)
            levels = color_jitter(levels, *factors.float())
        images = standardize_images(levels, self._examples)
        if augment.flip:
            # Every image in turn as it is and mirrored: chance alone shows many the same way again and again
            # (Jordan 2024, 3.6).
            first = permute_indices(rows, PROBABILITY_STEPS, derived_seed(self._seed, "augment", "flip"))
            images = horizontal_flip(images, torch.from_numpy((first + epoch) % 2 == 0))
        if augment.cutout:
            row, column = places("cutout", size)
            images = cutout(images, row, column, augment.cutout)
        return images


def center_crops(examples: ImageExamples, rows: RowIndices) -> Tensor:
    """The levels of their centres (B, C, size, size)."""
    pixels = np.stack([examples.center_crop(row) for row in rows.tolist()])
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float()


def _shifted_crops(
    examples: ImageExamples, rows: RowIndices, offsets: Int[Tensor, "2 B"], mirrored: bool
) -> Tensor:
    """The levels of squares so many pixels down and right of the centres (B, C, size, size); beyond a picture
    its mirror image, else the mean colour."""
    size, mean = examples.processor.size, np.array(examples.processor.statistics.mean, np.float32)
    beyond = None if mirrored else mean
    seen = []
    for row, down, right in zip(rows.tolist(), *offsets.tolist(), strict=True):
        picture = examples[row]
        top, left = ((side - size) // 2 for side in picture.shape[:2])
        seen.append(crop_with_padding(picture, top + down, left + right, size, beyond))
    return torch.from_numpy(np.stack(seen)).permute(0, 3, 1, 2).float()


def standardize_images(levels: Tensor, examples: ImageExamples) -> Tensor:
    """Levels (B, C, H, W) of 0 to 255 by the statistics of the inputs."""
    statistics = examples.processor.statistics
    mean, deviation = (torch.tensor(numbers)[:, None, None] for numbers in (statistics.mean, statistics.std))
    return (levels - mean) / deviation


def collate_images(examples: ImageExamples, rows: RowIndices, images: Tensor) -> ExampleBatch:
    """The `images` that were made of `rows`, with what belongs to them: labels, texts, or nothing."""
    beside = {name: column for name, column in examples.columns.items() if name != "picture"}
    columns, lengths = collate_columns(beside, rows)
    tokens = int(lengths["target"].sum()) if "target" in lengths else len(rows)
    return ExampleBatch(torch.from_numpy(rows), {"source": images, **columns}, lengths, tokens)
