"""Batches of images, a pure function of (seed, epoch, index).

The augmentation of an image is a function of (seed, epoch, image), and does not depend on the batch.
"""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import functional as F

from foveal.config import AugmentConfig, ImageConfig
from foveal.core.errors import UserError
from foveal.core.runtime import derived_seed
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import RowIndices
from foveal.data.core.length_buckets import collate_columns
from foveal.data.core.shuffle import permute_indices, shuffled_batch
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
"""Random numbers are multiples of 1 / PROBABILITY_STEPS."""
MAX_FIT_IMAGES, MAX_FIT_PIXELS = 4096, 1 << 24
"""Largest numbers of images and of pixels that initial weights are computed from: 200 MB in color."""
BASELINE_SIDE, BASELINE_CHUNK = 16, 256
"""Side of the images that a baseline reads, and images that are made small together."""
CROP_TRIES = 10
"""Tries to find a random crop of an image."""


class ImageEvalBatches:
    """Every image exactly once, in order. The views of an image follow each other.

    A batch has at most `image.batch_size` views, but always all views of at least one image.
    """

    def __init__(self, examples: ImageExamples, image: ImageConfig):
        self._examples, self._image = examples, image
        self._scales = [float(scale) for scale in image.tta_scales.split(",")]
        self._rows = max(1, image.batch_size // (VIEW_COUNTS[image.tta] * len(self._scales)))
        self.per_epoch = -(-len(examples) // self._rows)

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        """Return batch `index`. Column `source` is (B * views, C, size, size). All epochs are equal."""
        start = range(self.per_epoch)[index] * self._rows
        rows = np.arange(start, min(start + self._rows, len(self._examples)))
        return collate_images(self._examples, rows, standardize_images(self._views(rows), self._examples))

    def _views(self, rows: RowIndices) -> Tensor:
        """Return the views of the images, with pixel values from 0 to 255."""
        size, image = self._examples.processor.size, self._image
        pixels = (torch.tensor(self._examples[row]).permute(2, 0, 1) for row in rows.tolist())
        return torch.cat([make_views(each, size, image.tta, self._scales) for each in pixels]).float()


class ImageTrainBatches:
    """Every image exactly once per epoch, in random order, augmented.

    The batches of an epoch have equal sizes of at most `batch`. If the images don't divide evenly, sizes
    differ by one, because a last batch of a single image would have no useful batch statistics.
    """

    def __init__(self, examples: ImageExamples, batch: int, augment: AugmentConfig, seed: int):
        if not len(examples):
            raise UserError("no images: give images that can be read")
        self._examples, self._augment, self._seed = examples, augment, seed
        self.per_epoch = -(-len(examples) // batch)

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        index = range(self.per_epoch)[index]
        seed = derived_seed(self._seed, "images", epoch)
        rows = shuffled_batch(len(self._examples), self.per_epoch, index, seed)
        batch = collate_images(self._examples, rows, self._augmented(rows, epoch))
        if self._augment.mixup:
            generator = np.random.default_rng(derived_seed(self._seed, "mixup", epoch, index))
            weight = generator.beta(self._augment.mixup, self._augment.mixup, len(rows))
            columns = mixup(batch.columns, torch.from_numpy(np.maximum(weight, 1 - weight)).float())
            batch = replace(batch, columns=columns)
        return batch

    def _augmented(self, rows: RowIndices, epoch: int) -> Tensor:
        """Return the images `rows` with the augmentation of an epoch (B, C, size, size)."""
        augment, size = self._augment, self._examples.processor.size

        def uniform(name: str, count: int) -> Tensor:
            """Return `count` random numbers in [0, 1) for each row (count, B)."""
            numbers = np.add.outer(np.arange(count), rows * count)
            seed = derived_seed(self._seed, "augment", name, epoch)
            return torch.from_numpy(
                permute_indices(numbers.ravel(), PROBABILITY_STEPS, seed) / PROBABILITY_STEPS
            ).view(count, -1)

        def random_positions(name: str, count: int) -> Tensor:
            """Return two random integers below `count` for each row (2, B)."""
            return (uniform(name, 2) * count).long()

        if augment.crop == "random-resized":
            shapes = torch.from_numpy(self._examples.shapes(rows))
            area, ratio = uniform("size", 2 * CROP_TRIES).chunk(2)
            boxes = random_crop_boxes(shapes, area, ratio, *uniform("place", 2)).tolist()
            pairs = zip(rows.tolist(), boxes, strict=True)
            crops = [resized_crop(torch.tensor(self._examples[row]), box, size) for row, box in pairs]
            levels = torch.stack(crops).float()
        elif augment.crop == "none":
            levels = center_crops(self._examples, rows)
        else:
            offsets = random_positions("shift", 2 * augment.padding + 1) - augment.padding
            levels = _shifted_crops(self._examples, rows, offsets, augment.crop == "reflect-pad")
        if augment.color_jitter:
            factors = 1 + augment.color_jitter * (2 * uniform("jitter", 3) - 1)
            levels = color_jitter(levels, *factors.float())
        images = standardize_images(levels, self._examples)
        if augment.flip:
            # Each image alternates between original and mirrored: random flips would show many images in the
            # same way for several epochs in a row (Jordan 2024, 3.6).
            first = permute_indices(rows, PROBABILITY_STEPS, derived_seed(self._seed, "augment", "flip"))
            images = horizontal_flip(images, torch.from_numpy((first + epoch) % 2 == 0))
        if augment.cutout:
            row, column = random_positions("cutout", size)
            images = cutout(images, row, column, augment.cutout)
        return images


def center_crops(examples: ImageExamples, rows: RowIndices) -> Tensor:
    """Return the center crops of the images, with pixel values from 0 to 255 (B, C, size, size)."""
    pixels = np.stack([examples.center_crop(row) for row in rows.tolist()])
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float()


def _shifted_crops(
    examples: ImageExamples, rows: RowIndices, offsets: Int[Tensor, "2 B"], mirrored: bool
) -> Tensor:
    """Return squares of the images, `offsets` pixels down and right of the centers (B, C, size, size).

    Beyond its border, an image is reflected if `mirrored`, else filled with the mean color.
    """
    size, mean = examples.processor.size, np.array(examples.processor.statistics.mean, np.float32)
    fill = None if mirrored else mean
    crops = []
    for row, down, right in zip(rows.tolist(), *offsets.tolist(), strict=True):
        pixels = examples[row]
        top, left = ((side - size) // 2 for side in pixels.shape[:2])
        crops.append(crop_with_padding(pixels, top + down, left + right, size, fill))
    return torch.from_numpy(np.stack(crops)).permute(0, 3, 1, 2).float()


def standardize_images(levels: Tensor, examples: ImageExamples) -> Tensor:
    """Standardize pixel values from 0 to 255 (B, C, H, W) by the processor's statistics."""
    statistics = examples.processor.statistics
    mean, std = (torch.tensor(values)[:, None, None] for values in (statistics.mean, statistics.std))
    return (levels - mean) / std


def sampled_pixels(images: ImageExamples, seed: int) -> Tensor:
    """Return some images (N, C, H, W) as in evaluation: a function of the seed and the number of images."""
    size = images.processor.size
    count = min(len(images), MAX_FIT_IMAGES, MAX_FIT_PIXELS // size**2)
    rows = permute_indices(np.arange(count), len(images), derived_seed(seed, "fit"))
    return standardize_images(center_crops(images, rows), images)


def small_pixels(images: ImageExamples) -> Tensor:
    """Return the pixels of each image (N, D) at `BASELINE_SIDE` pixels to a side, standardized by channel."""
    parts = []
    for rows in np.array_split(np.arange(len(images)), -(-len(images) // BASELINE_CHUNK)):
        pixels = standardize_images(center_crops(images, rows), images)
        side = min(BASELINE_SIDE, pixels.shape[2])
        parts.append(F.adaptive_avg_pool2d(pixels, side).flatten(1))
    return torch.cat(parts)


def collate_images(examples: ImageExamples, rows: RowIndices, images: Tensor) -> ExampleBatch:
    """Return a batch of the `images` of `rows`, with their targets if there are any."""
    target_columns = {name: column for name, column in examples.columns.items() if name != "picture"}
    columns, lengths = collate_columns(target_columns, rows)
    indices = torch.from_numpy(rows)
    tokens = lengths.get("target", torch.ones_like(indices))
    return ExampleBatch(indices, {"source": images, **columns}, lengths, tokens)
