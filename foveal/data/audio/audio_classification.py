"""Recordings with a label each: a folder by class, or with metadata, to frames and class numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data.audio.audio_features import FEATURES_FILE, AudioFeatureExtractor
from foveal.data.audio.speech import (
    audio_rows,
    encode_unlabeled,
    load_features,
    read_unlabeled,
    standardized_features,
)
from foveal.data.core.classes import (
    LABELS_FILE,
    ClassIds,
    class_names,
    class_names_to_json,
    load_class_names,
    make_label_encoder,
)
from foveal.data.core.examples import Column, Examples, RaggedArray
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow, encode_or_skip
from foveal.data.core.split_data import SplitData, content_hash
from foveal.data.core.standardize import FloatArray
from foveal.data.files.data_part import DataPart
from foveal.data.files.folders import read_folder


@dataclass(frozen=True)
class AudioClassificationProcessor:
    """What makes frames of a recording, and the classes in the order of their numbers."""

    audio: AudioFeatureExtractor
    labels: tuple[str, ...]

    @property
    def source(self) -> AudioFeatureExtractor:
        """What the encoder needs."""
        return self.audio

    def files(self) -> dict[str, bytes]:
        return {
            f"audio/{FEATURES_FILE}": self.audio.to_json().encode(),
            LABELS_FILE: class_names_to_json(self.labels),
        }


def load_processor(folder: Path) -> AudioClassificationProcessor:
    """What `AudioClassificationProcessor.files` gave, below `folder`."""
    return AudioClassificationProcessor(
        AudioFeatureExtractor.load(folder / "audio"), load_class_names(folder / LABELS_FILE)
    )


def read(part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
    """The recordings of a folder: fields `source` (the sha256 of the file), `file` and `label`."""
    if not part.is_disk_folder:
        raise UserError(f"{part}: not a folder of recordings, by class or with metadata.csv or .jsonl")
    column = "label" if part.table is None else config.label
    return audio_rows(read_folder(part.listing, (column,)), column, "label", skipped)


def make_processor(
    data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors = NO_REUSE
) -> AudioClassificationProcessor:
    audio, frames = load_features(data, rows, config, reused)
    usable = [row for row, found in zip(rows, frames, strict=True) if not isinstance(found, str)]
    labels = [row.fields["label"] for row in usable]
    alike = f"all of the {len(labels):,} recordings to train on have the label"
    return AudioClassificationProcessor(audio, class_names(data, labels, alike, known=reused.labels))


def encode(
    rows: list[Row], processor: AudioClassificationProcessor, config: DataConfig, skipped: list[SkippedRow]
) -> SplitData[Examples]:
    """Columns `source` (frames) and `label`."""
    number = make_label_encoder(processor.labels)

    def encoded(row: Row) -> tuple[FloatArray, ClassIds] | str:
        numbers, frames = number([row.fields["label"]]), standardized_features(processor.audio, row)
        if isinstance(frames, str):
            return frames
        return numbers if isinstance(numbers, str) else (frames, numbers)

    kept, found = encode_or_skip(rows, encoded, skipped)
    wanted = ("file", "label", "source")
    names, labels, contents = ([str(row.fields[name]) for row in kept] for name in wanted)
    columns: dict[str, Column] = {
        "source": RaggedArray.from_rows(frames for frames, _ in found),
        "label": np.array([numbers for _, numbers in found], np.int64).reshape(-1),
    }
    examples = Examples(columns)
    lengths = examples.lengths("source")
    sha256 = content_hash(zip(contents, labels, strict=True))
    return SplitData(names, labels, examples, lengths, {"frames": sum(lengths)}, sha256, contents)


__all__ = ["encode", "encode_unlabeled", "load_processor", "make_processor", "read", "read_unlabeled"]
