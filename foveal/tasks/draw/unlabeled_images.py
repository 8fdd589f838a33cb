"""Images without targets, with pixel values from 0 to 1."""

from collections.abc import Iterator, Sequence
from typing import Any

from foveal.config import DataConfig
from foveal.data.core.prepared_data import ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.core.standardize import Statistics
from foveal.data.files.data_part import DataPart
from foveal.data.images.image_examples import ImageProcessor
from foveal.data.images.image_files import unlabeled_images
from foveal.data.images.image_rows import load_row_images
from foveal.data.images.image_source import ImageSource, keyed_by_content
from foveal.data.pairs.target import Target


class UnlabeledImageSource(ImageSource):
    """Images without labels, with pixel values from 0 (black) to 1 (white), which are not standardized."""

    is_stored = True

    def read(
        self, part: DataPart, target: Target[Any], config: DataConfig, skipped: list[SkippedRow]
    ) -> Iterator[Row]:
        for row in load_row_images(unlabeled_images(part), config.image, skipped):
            yield keyed_by_content(row, {})

    def fit(
        self, data: str, rows: Sequence[Row], config: DataConfig, reused: ReusedProcessors
    ) -> tuple[ImageProcessor, Sequence[Row]]:
        channels = config.image.channels
        return ImageProcessor(Statistics((0.0,) * channels, (255.0,) * channels), config.image.size), rows
