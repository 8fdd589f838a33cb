"""Recordings with a label each: a folder by class, or with metadata, to frames and class numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data.audio.audio_features import FILE as FEATURES
from foveal.data.audio.audio_features import AudioFeatures
from foveal.data.audio.speech import encode_questions, frames_of, heard, named, read_questions
from foveal.data.core.classes import Numbers, class_names, names_to_json, numbering, open_names
from foveal.data.core.examples import Column, Examples, Ragged
from foveal.data.core.prepared_data import NOTHING, Taken
from foveal.data.core.rows import Aside, Row, keep
from foveal.data.core.split_data import Part, hashed
from foveal.data.core.standardize import Values
from foveal.data.files.folders import read_folder
from foveal.data.images.image_files import table_of

LABELS = "labels.json"


@dataclass(frozen=True)
class SoundInputs:
    """What makes frames of a recording, and the classes in the order of their numbers."""

    audio: AudioFeatures
    labels: tuple[str, ...]

    @property
    def source(self) -> AudioFeatures:
        """What the encoder needs."""
        return self.audio

    def files(self) -> dict[str, bytes]:
        return {f"audio/{FEATURES}": self.audio.to_json().encode(), LABELS: names_to_json(self.labels)}


def open_inputs(folder: Path) -> SoundInputs:
    """What `SoundInputs.files` gave, below `folder`."""
    return SoundInputs(AudioFeatures.load(folder / "audio"), open_names(folder / LABELS))


def read(data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
    """The recordings of a folder: fields `source` (the sha256 of the file), `file` and `label`."""
    folder = Path(data)
    if not folder.is_dir():
        raise UserError(f"{data}: not a folder of recordings, by class or with metadata.csv or .jsonl")
    column = "label" if table_of(folder) is None else config.label
    return named(read_folder(folder, (column,)), column, "label", aside)


def make_inputs(data: str, rows: list[Row], config: DataConfig, taken: Taken = NOTHING) -> SoundInputs:
    audio, frames = heard(data, rows, config, taken)
    usable = [row for row, found in zip(rows, frames, strict=True) if not isinstance(found, str)]
    labels = [row.fields["label"] for row in usable]
    alike = f"all of the {len(labels):,} recordings to train on have the label"
    return SoundInputs(audio, class_names(data, labels, alike, known=taken.labels))


def encode(rows: list[Row], inputs: SoundInputs, config: DataConfig, aside: list[Aside]) -> Part[Examples]:
    """Columns `source` (frames) and `label`."""
    number = numbering(inputs.labels)

    def encoded(row: Row) -> tuple[Values, Numbers] | str:
        numbers, frames = number([row.fields["label"]]), frames_of(inputs.audio, row)
        if isinstance(frames, str):
            return frames
        return numbers if isinstance(numbers, str) else (frames, numbers)

    kept, found = keep(rows, encoded, aside)
    wanted = ("file", "label", "source")
    names, labels, contents = ([str(row.fields[name]) for row in kept] for name in wanted)
    columns: dict[str, Column] = {
        "source": Ragged.from_rows(frames for frames, _ in found),
        "label": np.array([numbers for _, numbers in found], np.int64).reshape(-1),
    }
    examples = Examples(columns)
    lengths = examples.lengths("source")
    sha256 = hashed(zip(contents, labels, strict=True))
    return Part(names, labels, examples, lengths, {"frames": sum(lengths)}, sha256, contents)


__all__ = ["encode", "encode_questions", "make_inputs", "open_inputs", "read", "read_questions"]
