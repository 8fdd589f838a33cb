"""The sheet shows the pictures of the first batch as they were read, and below what the model is fed."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from foveal.config import AugmentConfig
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.standardize import Statistics
from foveal.data.images.image_batches import ImageTrainBatches
from foveal.data.images.image_examples import ImageExamples, ImageProcessor
from foveal.data.pairs.labels import LabelProcessor
from foveal.inspection.contact_sheet import GAP, LINE_HEIGHT, TILE_SIZE, contact_sheet


def pictures(count: int, side: int, channels: int, many: int = 0) -> ImageExamples:
    draw = np.random.default_rng(0)
    shapes = [(side, side + number % (many + 1)) for number in range(count)]
    found = [draw.integers(0, 256, (*shape, channels), np.uint8) for shape in shapes]
    inputs = ImageProcessor(Statistics((100.0,) * channels, (50.0,) * channels), side)
    return ImageExamples.from_data(found, inputs, {"label": np.arange(count) % 2})


def drawn(examples: ImageExamples, **augment: Any) -> tuple[np.ndarray, ExampleBatch]:
    order = ImageTrainBatches(examples, 10, AugmentConfig(**augment), seed=0)
    sheet = Image.open(io.BytesIO(contact_sheet(examples, order, LabelProcessor(("cat", "dog")).caption)))
    return np.asarray(sheet.convert("RGB")), order.batch(0, 0)


@pytest.mark.parametrize("channels", [1, 3])
def test_pixels_are_those_of_the_picture_and_of_the_batch(channels):
    examples = pictures(10, 8, channels)
    sheet, batch = drawn(examples, flip=True)
    assert sheet.shape == (2 * TILE_SIZE + LINE_HEIGHT + 2 * GAP, 10 * (TILE_SIZE + GAP) + GAP, 3)
    for number, row in enumerate(batch.rows.tolist()):
        x = GAP + number * (TILE_SIZE + GAP)
        above = sheet[GAP : GAP + TILE_SIZE : TILE_SIZE // 8, x : x + TILE_SIZE : TILE_SIZE // 8]
        below = sheet[
            GAP + TILE_SIZE : GAP + 2 * TILE_SIZE : TILE_SIZE // 8, x : x + TILE_SIZE : TILE_SIZE // 8
        ]
        assert (above == examples[row]).all()
        levels = batch.columns["source"][number].permute(1, 2, 0) * 50 + 100
        assert (below == levels.round().numpy()).all()
    assert (sheet[GAP + 2 * TILE_SIZE :] != 255).any()  # the labels


@pytest.mark.parametrize("size", [8, 130])
def test_all_augmentations_and_shapes_fit(size):
    sheet, _ = drawn(
        pictures(30, size, 3, many=20),
        crop="random-resized",
        flip=True,
        color_jitter=0.3,
        cutout=4,
        mixup=0.5,
    )
    assert sheet.shape[1] <= 1500


def test_each_picture_has_the_caption_of_its_own_columns():
    examples, captioned = pictures(10, 8, 3), []
    order = ImageTrainBatches(examples, 10, AugmentConfig(), seed=0)

    def caption(columns):
        captioned.append(columns)
        return ""

    contact_sheet(examples, order, caption)
    batch = order.batch(0, 0)
    assert [int(columns["label"]) for columns in captioned] == batch.columns["label"].tolist()
    assert len({int(columns["label"]) for columns in captioned}) == 2
