"""Images as examples: pixels, standardised when they are seen; and those with a label each."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from foveal.config import DataConfig
from foveal.data.core.classes import (
    LABELS_FILE,
    ClassIds,
    class_names,
    class_names_to_json,
    load_class_names,
    make_label_encoder,
)
from foveal.data.core.examples import Column, Examples
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow, encode_or_skip
from foveal.data.core.split_data import SplitData, content_hash
from foveal.data.core.standardize import STATISTICS_FILE, FloatArray, Statistics, explain_read_errors
from foveal.data.files.data_part import DataPart
from foveal.data.images.image_decoding import Pixels, upscale, upscaled_shape
from foveal.data.images.image_files import labeled_images, unlabeled_images
from foveal.data.images.image_rows import load_row_images

IMAGE_SIZE_FILE = "images.json"


@runtime_checkable
class ImageProcessor(Protocol):
    """What is seen of images: squares of `size` pixels, standardised by the channels' statistics."""

    @property
    def statistics(self) -> Statistics: ...

    @property
    def size(self) -> int: ...

    def caption(self, columns: Mapping[str, Tensor]) -> str:
        """In words, what belongs to one image of a batch; `columns` are its own."""


@dataclass(frozen=True)
class ImageClassificationProcessor:
    """The statistics of the channels, the classes in the order of their numbers, and what a model sees:
    squares of `size` pixels."""

    statistics: Statistics
    labels: tuple[str, ...]
    size: int

    @property
    def source(self) -> Statistics:
        """What the encoder needs."""
        return self.statistics

    @property
    def channels(self) -> int:
        return len(self.statistics.mean)

    @cached_property
    def numbers(self) -> Callable[[Sequence[str]], ClassIds | str]:
        """Of labels, or why one has none."""
        return make_label_encoder(self.labels)

    def caption(self, columns: Mapping[str, Tensor]) -> str:
        """The label; of two images that were mixed both, with the share of the first."""
        name = self.labels[int(columns["label"])]
        if "other" not in columns:
            return name
        return f"{name} {100 * columns['share']:.0f} %, {self.labels[int(columns['other'])]}"

    def files(self) -> dict[str, bytes]:
        return image_processor_files(self) | {LABELS_FILE: class_names_to_json(self.labels)}


def image_processor_files(processor: ImageProcessor) -> dict[str, bytes]:
    """What a run keeps of it."""
    size = json.dumps({"size": processor.size})
    return {STATISTICS_FILE: processor.statistics.to_json().encode(), IMAGE_SIZE_FILE: size.encode()}


def load_statistics_and_size(folder: Path) -> tuple[Statistics, int]:
    """What `image_processor_files` gave, below `folder`."""
    with explain_read_errors(folder / IMAGE_SIZE_FILE):
        size = int(json.loads((folder / IMAGE_SIZE_FILE).read_bytes())["size"])
    return Statistics.load(folder), size


@dataclass(frozen=True)
class ImageExamples(Examples):
    """Column `picture`, the number of each row's picture, and what belongs to it, such as its `label`.

    Small ones are kept as they are: of what is asked for, both sides are at least `processor.size`.
    """

    processor: ImageProcessor
    unique_images: Sequence[Pixels]

    @classmethod
    def from_data(
        cls, pictures: Iterable[Pixels], processor: ImageProcessor, **columns: Column
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


class ImageFormat:
    """What forms of images have in common: images that wait for an answer."""

    def read_unlabeled(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        """A picture, or all of a folder or zip; `source` is the name of the file."""
        for row in load_row_images(unlabeled_images(part), config.image, skipped):
            yield Row(row.location, {"source": row.fields["name"], **row.fields})

    def encode_unlabeled(
        self, rows: list[Row], processor: ImageProcessor, config: DataConfig, skipped: list[SkippedRow]
    ) -> tuple[list[Row], ImageExamples]:
        return rows, ImageExamples.from_data((row.fields["picture"] for row in rows), processor)


class ImageClassificationFormat(ImageFormat):
    """A `DataFormat`."""

    def read(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        """The labelled images at a path: fields `source` (the sha256 of the pixels), `picture` (H, W, C), the
        `name` of the file and `label`."""
        for row in load_row_images(labeled_images(part, config.label), config.image, skipped):
            label = row.fields["label"]
            if label.splitlines() != [label]:  # labels are written beside pictures, and in tables
                skipped.append(
                    SkippedRow(row.location, f"the label {label!r} has a line end in it; rename it")
                )
                continue
            yield Row(row.location, {"source": row.fields["content"], **row.fields})

    def make_processor(
        self, data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors = NO_REUSE
    ) -> ImageClassificationProcessor:
        labels = (row.fields["label"] for row in rows)
        alike = f"all of the {len(rows):,} images to train on have the label"
        names = class_names(data, labels, alike, known=reused.labels)
        return ImageClassificationProcessor(reused.source or image_statistics(rows), names, config.image.size)

    def encode(
        self,
        rows: list[Row],
        processor: ImageClassificationProcessor,
        config: DataConfig,
        skipped: list[SkippedRow],
    ) -> SplitData[ImageExamples]:
        """Column `label` beside the pictures."""
        kept, numbers = encode_or_skip(rows, lambda row: processor.numbers([row.fields["label"]]), skipped)
        wanted = ("name", "label", "source")
        names, labels, contents = ([row.fields[name] for row in kept] for name in wanted)
        pictures = (row.fields["picture"] for row in kept)
        column = np.array(numbers, np.int64).reshape(-1)
        sha256 = content_hash(zip(contents, labels, strict=True))
        return SplitData(
            names,
            labels,
            ImageExamples.from_data(pictures, processor, label=column),
            [],
            {},
            sha256,
            contents,
        )

    def load_processor(self, folder: Path) -> ImageClassificationProcessor:
        """What `ImageClassificationProcessor.files` gave, below `folder`."""
        statistics, size = load_statistics_and_size(folder)
        return ImageClassificationProcessor(statistics, load_class_names(folder / LABELS_FILE), size)


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
