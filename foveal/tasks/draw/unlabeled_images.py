"""Images with nothing beside them, as levels from 0 to 1."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from foveal.config import DataConfig
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.core.split_data import SplitData, content_hash
from foveal.data.core.standardize import Statistics
from foveal.data.files.data_part import DataPart
from foveal.data.images.image_examples import (
    ImageExamples,
    ImageFormat,
    image_processor_files,
    load_statistics_and_size,
)
from foveal.data.images.image_files import unlabeled_images
from foveal.data.images.image_rows import load_row_images


@dataclass(frozen=True)
class UnlabeledImageProcessor:
    """`ImageProcessor`: black is 0 and white 1, whatever the images are."""

    statistics: Statistics
    size: int

    def caption(self, columns: Mapping[str, Tensor]) -> str:
        """Nothing is known of an image."""
        return ""

    def files(self) -> dict[str, bytes]:
        return image_processor_files(self)


class UnlabeledImageFormat(ImageFormat):
    """A `DataFormat`; labels, if there are any, are not looked at."""

    def read(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        """The images at a path: fields `source` (the sha256 of the pixels), `picture` (H, W, C), and
        the `name` of the file."""
        for row in load_row_images(unlabeled_images(part), config.image, skipped):
            yield Row(row.location, {"source": row.fields["content"], **row.fields})

    def make_processor(
        self, data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors = NO_REUSE
    ) -> UnlabeledImageProcessor:
        channels = config.image.channels
        return UnlabeledImageProcessor(Statistics((0.0,) * channels, (255.0,) * channels), config.image.size)

    def encode(
        self,
        rows: list[Row],
        processor: UnlabeledImageProcessor,
        config: DataConfig,
        skipped: list[SkippedRow],
    ) -> SplitData[ImageExamples]:
        names, contents = ([row.fields[name] for row in rows] for name in ("name", "source"))
        pictures = ImageExamples.from_data((row.fields["picture"] for row in rows), processor)
        return SplitData(names, [], pictures, [], {}, content_hash(contents), contents)

    def load_processor(self, folder: Path) -> UnlabeledImageProcessor:
        """What `UnlabeledImageProcessor.files` gave, below `folder`."""
        return UnlabeledImageProcessor(*load_statistics_and_size(folder))
