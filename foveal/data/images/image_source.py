"""The source of images, from files, folders, zips, arrays and tables."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from foveal.config import DataConfig
from foveal.core.parse_json import parse_json
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Column, RowIndices
from foveal.data.core.prepared_data import ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.core.simple_features import SimpleFeatures
from foveal.data.core.standardize import STATISTICS_FILE, Statistics, explain_read_errors
from foveal.data.files.data_part import DataPart
from foveal.data.images.image_batches import (
    BASELINE_SIDE,
    ImageEvalBatches,
    ImageTrainBatches,
    center_crops,
    collate_images,
    sampled_pixels,
    small_pixels,
    standardize_images,
)
from foveal.data.images.image_examples import ImageExamples, ImageProcessor, image_statistics
from foveal.data.images.image_files import captioned_images, labeled_images, unlabeled_images
from foveal.data.images.image_rows import load_row_images
from foveal.data.images.pixel_levels import Pixels
from foveal.data.pairs.source import Source
from foveal.data.pairs.target import Target

IMAGE_SIZE_FILE = "images.json"


class PixelSource(Source[ImageProcessor], ABC):
    """Base class of the sources of images and of clips. A row has the `name` of its file."""

    fixed_settings = ("data.image.size", "data.image.channels")
    model_sizes = ()

    @abstractmethod
    def statistics(self, rows: Sequence[Row]) -> Statistics:
        """Return the channel statistics of all pixels of the rows."""

    def fit(
        self, data: str, rows: Sequence[Row], config: DataConfig, reused: ReusedProcessors
    ) -> tuple[ImageProcessor, Sequence[Row]]:
        known: ImageProcessor | None = reused.source
        statistics = self.statistics(rows) if known is None else known.statistics
        return ImageProcessor(statistics, config.image.size), rows

    def sized_processor(self, sizes: Mapping[str, int], config: DataConfig) -> ImageProcessor:
        return ImageProcessor(Statistics.identity(config.image.channels), config.image.size)

    def for_config(self, processor: ImageProcessor, config: DataConfig) -> ImageProcessor:
        return replace(processor, size=config.image.size)

    def files(self, processor: ImageProcessor, target_processor: Any) -> dict[str, bytes]:
        size = json.dumps({"size": processor.size})
        return {STATISTICS_FILE: processor.statistics.to_json().encode(), IMAGE_SIZE_FILE: size.encode()}

    def load(self, folder: Path) -> ImageProcessor:
        with explain_read_errors(folder / IMAGE_SIZE_FILE):
            size = int(parse_json((folder / IMAGE_SIZE_FILE).read_bytes())["size"])
        return ImageProcessor(Statistics.load(folder), size)

    def names(self, rows: Sequence[Row]) -> list[str]:
        return [row.fields["name"] for row in rows]


class ImageSource(PixelSource):
    """An image as standardized pixels. The field `picture` of a row is (H, W, C).

    An image with several targets is several rows. These rows have the same key, so they are in the same
    split.
    """

    input_field = "picture"
    simple_features_in_words = f"{BASELINE_SIDE} x {BASELINE_SIDE} pixels"
    max_simple_features = 3 * BASELINE_SIDE**2
    settings = ("data.encoding", "data.image", "data.augment")
    same_label = "all of the {count:,} images to train on have the label"
    is_stored = True

    def read(
        self, part: DataPart, target: Target[Any], config: DataConfig, skipped: list[SkippedRow]
    ) -> Iterator[Row]:
        read = labeled_images if target.is_class else captioned_images
        for row in load_row_images(read(part, target.column(config)), config.image, skipped):
            label = row.fields.pop("label")
            if target.is_class and label.splitlines() != [label]:  # labels are shown in lines and tables
                reason = f"the label {label!r} has a line end in it; rename it"
                skipped.append(SkippedRow(row.location, reason))
            else:
                yield keyed_by_content(row, {target.field: label})

    def read_unlabeled(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        """Read an image, or all images of a folder or zip. `source` is the name of the file."""
        for row in load_row_images(unlabeled_images(part), config.image, skipped):
            yield Row(row.location, {"source": row.fields["name"], **row.fields})

    def statistics(self, rows: Sequence[Row]) -> Statistics:
        return image_statistics(rows)

    def encode(self, row: Row, processor: ImageProcessor, config: DataConfig) -> Any | str:
        return row.fields["picture"]

    def examples(
        self, rows: Sequence[Row], values: list[Any], processor: ImageProcessor, columns: Mapping[str, Column]
    ) -> ImageExamples:
        return ImageExamples.from_data(values, processor, columns)

    def position_names(self, batch: ExampleBatch, name: str, processor: ImageProcessor) -> tuple[str, ...]:
        return ()

    def pixels(self, examples: ImageExamples, row: int) -> Pixels:
        crop = examples.center_crop(row)
        return np.broadcast_to(crop, (*crop.shape[:2], 3))

    def lengths(self, rows: Sequence[Row], examples: Any) -> list[int]:
        return []

    def sizes(self, rows: Sequence[Row], examples: Any) -> dict[str, int]:
        sizes: dict[str, int] = examples.sizes
        return sizes

    def train_batches(self, examples: Any, config: DataConfig, seed: int) -> ImageTrainBatches:
        return ImageTrainBatches(examples, config.image.batch_size, config.augment, seed)

    def eval_batches(self, examples: Any, config: DataConfig) -> ImageEvalBatches:
        return ImageEvalBatches(examples, config.image)

    def targets(self, part: DataPart, target: Target[Any], config: DataConfig, most: int) -> list[Any]:
        read = labeled_images if target.is_class else captioned_images
        rows = read(part, target.column(config))
        return [row.fields["label"] for row in islice(rows, most) if isinstance(row, Row)]

    def simple_features(self, train: ImageExamples, held_out: ImageExamples) -> SimpleFeatures:
        return small_pixels(train), small_pixels(held_out)

    def fit_inputs(self, examples: Any, seed: int) -> tuple[Tensor, ...]:
        return (sampled_pixels(examples, seed),)

    def collate(self, examples: Any, rows: RowIndices) -> ExampleBatch:
        return collate_images(examples, rows, standardize_images(center_crops(examples, rows), examples))


def keyed_by_content(row: Row, more: Mapping[str, Any]) -> Row:
    """Return the row of a decoded image with more fields. The hash of the image's content is the key."""
    content = row.fields["content"]
    return Row(row.location, {"source": content, **row.fields, **more}, content)
