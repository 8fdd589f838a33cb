"""Clips as examples: the pixels of their frames, with a label for each clip, for each frame, or a text."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import UInt8

from foveal.config import DataConfig
from foveal.data.core.classes import LABELS_FILE, ClassIds, class_names, load_class_names
from foveal.data.core.examples import Column, Examples, RaggedArray
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow, encode_or_skip
from foveal.data.core.split_data import SplitData, content_hash
from foveal.data.core.standardize import FloatArray, Statistics
from foveal.data.files.data_part import DataPart
from foveal.data.images.captioning import CaptioningProcessor
from foveal.data.images.image_examples import ImageClassificationProcessor, load_statistics_and_size
from foveal.data.text.length_limit import LengthLimit, load_length_limit
from foveal.data.text.tokenizers import load_tokenizer, make_tokenizer
from foveal.data.video.clip_files import LABELS_COLUMN, labeled_clips, unlabeled_clips
from foveal.data.video.clip_loading import DecodedClip, load_clip

ClipProcessor = ImageClassificationProcessor | CaptioningProcessor
FramePixels = UInt8[np.ndarray, "N H W C"]


@dataclass(frozen=True)
class ClipExamples(Examples):
    """Column `source` has the numbers of each clip's frames, which are in `frames`; beside it what belongs to
    the clip."""

    frames: FramePixels
    statistics: Statistics

    @classmethod
    def from_data(
        cls, rows: Iterable[Row], processor: ClipProcessor, columns: Mapping[str, Column]
    ) -> "ClipExamples":
        """The frames of `rows`, with more `columns`."""
        empty = np.zeros((0, processor.size, processor.size, len(processor.statistics.mean)), np.uint8)
        clips: list[FramePixels] = [row.fields["frames"] for row in rows]
        return cls(columns, np.concatenate([*clips, empty]), processor.statistics)


def frame_indices(rows: Iterable[Row]) -> RaggedArray:
    lengths = np.array([0, *(len(row.fields["frames"]) for row in rows)])
    return RaggedArray(np.arange(lengths.sum()), lengths.cumsum())


class ClipFormat(ABC):
    """A `DataFormat`; what belongs to a clip is the subclass's."""

    field: ClassVar[str]
    """Where a row has it."""

    @abstractmethod
    def column(self, config: DataConfig) -> str:
        """Where it stands."""

    @abstractmethod
    def numbers(self, row: Row, processor: Any, config: DataConfig) -> ClassIds | str:
        """It as the model has it; or why that can't be."""

    @abstractmethod
    def columns(self, source: RaggedArray, numbers: list[ClassIds]) -> dict[str, Column]:
        """Of the `source`, and of the `numbers` of what belongs to it, where that is known."""

    def read(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        """The clips at a path: fields `source` (the sha256 of the pixels), `frames` (T, H, W, C), the `name`
        and what belongs to the clip. A frame that can't be read is put into the list, and the others are
        used."""
        for row, clip in _read_clips(labeled_clips(part, self.column(config)), config, skipped):
            label = row.fields["label"]
            if isinstance(label, list):
                if len(label) != clip.frames:
                    why = f"{len(label)} labels, and {clip.frames} frames; give each frame one"
                    skipped.append(SkippedRow(row.location, why))
                    continue
                label = [label[number] for number in clip.used]
            said = {"name": row.fields["name"], self.field: label}
            yield Row(row.location, {"source": clip.content, "frames": clip.pixels, **said})

    def encode(
        self, rows: list[Row], processor: Any, config: DataConfig, skipped: list[SkippedRow]
    ) -> SplitData[ClipExamples]:
        kept, numbers = encode_or_skip(rows, lambda row: self.numbers(row, processor, config), skipped)
        wanted = ("name", self.field, "source")
        names, labels, contents = ([row.fields[name] for row in kept] for name in wanted)
        examples = ClipExamples.from_data(kept, processor, self.columns(frame_indices(kept), numbers))
        lengths = examples.lengths("source")
        sizes, sha256 = {"frames": sum(lengths)}, content_hash(zip(contents, labels, strict=True))
        return SplitData(names, labels, examples, lengths, sizes, sha256, contents)

    def read_unlabeled(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        for row, clip in _read_clips(unlabeled_clips(part), config, skipped):
            yield Row(row.location, {"source": row.fields["name"], "frames": clip.pixels})

    def encode_unlabeled(
        self, rows: list[Row], processor: Any, config: DataConfig, skipped: list[SkippedRow]
    ) -> tuple[list[Row], ClipExamples]:
        return rows, ClipExamples.from_data(rows, processor, self.columns(frame_indices(rows), []))


class LabeledClipFormat(ClipFormat):
    """Labels of classes."""

    field = "label"

    def make_processor(
        self, data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors = NO_REUSE
    ) -> ImageClassificationProcessor:
        labels = (label for row in rows for label in _label_list(row.fields["label"]))
        alike = f"all of the {len(rows):,} clips to train on have the label"
        names = class_names(data, labels, alike, known=reused.labels)
        return ImageClassificationProcessor(reused.source or _statistics(rows), names, config.image.size)

    def load_processor(self, folder: Path) -> ImageClassificationProcessor:
        statistics, size = load_statistics_and_size(folder)
        return ImageClassificationProcessor(statistics, load_class_names(folder / LABELS_FILE), size)

    def numbers(
        self, row: Row, processor: ImageClassificationProcessor, config: DataConfig
    ) -> ClassIds | str:
        return processor.numbers(_label_list(row.fields["label"]))


class VideoClassificationFormat(LabeledClipFormat):
    def column(self, config: DataConfig) -> str:
        return config.label

    def columns(self, source: RaggedArray, numbers: list[ClassIds]) -> dict[str, Column]:
        return {"source": source} | ({"label": np.concatenate(numbers)} if numbers else {})


class FrameTaggingFormat(LabeledClipFormat):
    """Frame i is place i."""

    def column(self, config: DataConfig) -> str:
        return LABELS_COLUMN

    def columns(self, source: RaggedArray, numbers: list[ClassIds]) -> dict[str, Column]:
        places = RaggedArray.from_rows(np.arange(length) for length in source.lengths)
        target = {"target": RaggedArray.from_rows(numbers)} if numbers else {}
        return {"source": source, "places": places, **target}


class VideoCaptioningFormat(ClipFormat):
    field = "target"

    def make_processor(
        self, data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors = NO_REUSE
    ) -> CaptioningProcessor:
        texts = [row.fields["target"] for row in rows]
        target = make_tokenizer(config.tokenizer, config.vocab_size, texts)
        room = LengthLimit.from_texts(target, texts, config.max_length)
        return CaptioningProcessor(reused.source or _statistics(rows), config.image.size, target, room)

    def load_processor(self, folder: Path) -> CaptioningProcessor:
        return CaptioningProcessor(
            *load_statistics_and_size(folder), load_tokenizer(folder / "target"), load_length_limit(folder)
        )

    def column(self, config: DataConfig) -> str:
        return config.text

    def numbers(self, row: Row, processor: CaptioningProcessor, config: DataConfig) -> ClassIds | str:
        target = processor.encode_target(row.fields["target"])
        if len(target) > config.max_length:
            return f"{len(target)} tokens, and data.max_length={config.max_length}: raise it to use the row"
        return target

    def columns(self, source: RaggedArray, numbers: list[ClassIds]) -> dict[str, Column]:
        target = {"target": RaggedArray.from_rows(numbers)} if numbers else {}
        return {"source": source, **target}


def _read_clips(
    rows: Iterator[Row | SkippedRow], config: DataConfig, skipped: list[SkippedRow]
) -> Iterator[tuple[Row, DecodedClip]]:
    """Those whose frames can be read; the others, and single frames, are put into the list."""
    for row in rows:
        if isinstance(row, SkippedRow):
            skipped.append(row)
            continue
        image = config.image
        clip = load_clip(row.fields.pop("frames"), image.size, image.channels, config.max_length)
        if isinstance(clip, str):
            skipped.append(SkippedRow(row.location, clip))
            continue
        skipped += [
            SkippedRow(f"{row.location}, {name}", f"{why}; the other frames are used")
            for name, why in clip.skipped_frames
        ]
        yield row, clip


def _label_list(label: str | list[str]) -> list[str]:
    return [label] if isinstance(label, str) else label


def _statistics(rows: list[Row]) -> Statistics:
    """Those of the channels of all frames."""
    return Statistics.from_data(_pixels(row.fields["frames"]) for row in rows)


def _pixels(frames: FramePixels) -> FloatArray:
    return frames.reshape(-1, frames.shape[3]).astype(np.float32)
