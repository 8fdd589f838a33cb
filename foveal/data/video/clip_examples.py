"""Clips as examples: the pixels of their frames, with a label for each clip, for each frame, or a text."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import UInt8

from foveal.config import DataConfig
from foveal.data.core.classes import Numbers, class_names, open_names
from foveal.data.core.examples import Column, Examples, Ragged
from foveal.data.core.prepared_data import NOTHING, Taken
from foveal.data.core.rows import Aside, Row, keep
from foveal.data.core.split_data import Part, hashed
from foveal.data.core.standardize import Statistics, Values
from foveal.data.images.captioning import CaptionInputs
from foveal.data.images.image_examples import LABELS as NAMES
from foveal.data.images.image_examples import ImageInputs, open_seen
from foveal.data.text.length_limit import Room, read_room
from foveal.data.text.tokenizers import load_tokenizer, make_tokenizer
from foveal.data.video.clip_files import LABELS, labelled_clips, unlabelled_clips
from foveal.data.video.clip_loading import Clip, read_clip

Inputs = ImageInputs | CaptionInputs
Levels = UInt8[np.ndarray, "N H W C"]


@dataclass(frozen=True)
class Shots(Examples):
    """Column `source` has the numbers of each clip's frames, which are in `frames`; beside it what belongs to
    the clip."""

    frames: Levels
    statistics: Statistics

    @classmethod
    def of(cls, rows: Iterable[Row], inputs: Inputs, columns: Mapping[str, Column]) -> "Shots":
        """The frames of `rows`, with more `columns`."""
        empty = np.zeros((0, inputs.size, inputs.size, len(inputs.statistics.mean)), np.uint8)
        clips: list[Levels] = [row.fields["frames"] for row in rows]
        return cls(columns, np.concatenate([*clips, empty]), inputs.statistics)


def source_of(rows: Iterable[Row]) -> Ragged:
    lengths = np.array([0, *(len(row.fields["frames"]) for row in rows)])
    return Ragged(np.arange(lengths.sum()), lengths.cumsum())


class ClipForm(ABC):
    """A `Form`; what belongs to a clip is the subclass's."""

    field: ClassVar[str]
    """Where a row has it."""

    @abstractmethod
    def column(self, config: DataConfig) -> str:
        """Where it stands."""

    @abstractmethod
    def numbers(self, row: Row, inputs: Any, config: DataConfig) -> Numbers | str:
        """It as the model has it; or why that can't be."""

    @abstractmethod
    def columns(self, source: Ragged, numbers: list[Numbers]) -> dict[str, Column]:
        """Of the `source`, and of the `numbers` of what belongs to it, where that is known."""

    def read(self, data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
        """The clips at a path: fields `source` (the sha256 of the pixels), `frames` (T, H, W, C), the `name`
        and what belongs to the clip. A frame that can't be read is put into the list, and the others are
        used."""
        for row, clip in _read(labelled_clips(data, self.column(config)), config, aside):
            label = row.fields["label"]
            if isinstance(label, list):
                if len(label) != clip.frames:
                    why = f"{len(label)} labels, and {clip.frames} frames; give each frame one"
                    aside.append(Aside(row.place, why))
                    continue
                label = [label[number] for number in clip.kept]
            said = {"name": row.fields["name"], self.field: label}
            yield Row(row.place, {"source": clip.content, "frames": clip.pixels, **said})

    def encode(self, rows: list[Row], inputs: Any, config: DataConfig, aside: list[Aside]) -> Part[Shots]:
        kept, numbers = keep(rows, lambda row: self.numbers(row, inputs, config), aside)
        wanted = ("name", self.field, "source")
        names, labels, contents = ([row.fields[name] for row in kept] for name in wanted)
        examples = Shots.of(kept, inputs, self.columns(source_of(kept), numbers))
        lengths = examples.lengths("source")
        sizes, sha256 = {"frames": sum(lengths)}, hashed(zip(contents, labels, strict=True))
        return Part(names, labels, examples, lengths, sizes, sha256, contents)

    def read_questions(self, data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
        for row, clip in _read(unlabelled_clips(data), config, aside):
            yield Row(row.place, {"source": row.fields["name"], "frames": clip.pixels})

    def encode_questions(
        self, rows: list[Row], inputs: Any, config: DataConfig, aside: list[Aside]
    ) -> tuple[list[Row], Shots]:
        return rows, Shots.of(rows, inputs, self.columns(source_of(rows), []))


class LabelForm(ClipForm):
    """Labels of classes."""

    field = "label"

    def make_inputs(
        self, data: str, rows: list[Row], config: DataConfig, taken: Taken = NOTHING
    ) -> ImageInputs:
        labels = (label for row in rows for label in _listed(row.fields["label"]))
        alike = f"all of the {len(rows):,} clips to train on have the label"
        names = class_names(data, labels, alike, known=taken.labels)
        return ImageInputs(taken.source or _statistics(rows), names, config.image.size)

    def open_inputs(self, folder: Path) -> ImageInputs:
        statistics, size = open_seen(folder)
        return ImageInputs(statistics, open_names(folder / NAMES), size)

    def numbers(self, row: Row, inputs: ImageInputs, config: DataConfig) -> Numbers | str:
        return inputs.numbers(_listed(row.fields["label"]))


class LabelOfClip(LabelForm):
    def column(self, config: DataConfig) -> str:
        return config.label

    def columns(self, source: Ragged, numbers: list[Numbers]) -> dict[str, Column]:
        return {"source": source} | ({"label": np.concatenate(numbers)} if numbers else {})


class LabelOfFrame(LabelForm):
    """Frame i is place i."""

    def column(self, config: DataConfig) -> str:
        return LABELS

    def columns(self, source: Ragged, numbers: list[Numbers]) -> dict[str, Column]:
        places = Ragged.from_rows(np.arange(length) for length in source.lengths)
        target = {"target": Ragged.from_rows(numbers)} if numbers else {}
        return {"source": source, "places": places, **target}


class TextOfClip(ClipForm):
    field = "target"

    def make_inputs(
        self, data: str, rows: list[Row], config: DataConfig, taken: Taken = NOTHING
    ) -> CaptionInputs:
        texts = [row.fields["target"] for row in rows]
        target = make_tokenizer(config.tokenizer, config.vocabulary, texts)
        room = Room.of_texts(target, texts, config.longest)
        return CaptionInputs(taken.source or _statistics(rows), config.image.size, target, room)

    def open_inputs(self, folder: Path) -> CaptionInputs:
        return CaptionInputs(*open_seen(folder), load_tokenizer(folder / "target"), read_room(folder))

    def column(self, config: DataConfig) -> str:
        return config.column

    def numbers(self, row: Row, inputs: CaptionInputs, config: DataConfig) -> Numbers | str:
        target = inputs.encode_target(row.fields["target"])
        if len(target) > config.longest:
            return f"{len(target)} tokens, and data.longest={config.longest}: raise it to use the row"
        return target

    def columns(self, source: Ragged, numbers: list[Numbers]) -> dict[str, Column]:
        target = {"target": Ragged.from_rows(numbers)} if numbers else {}
        return {"source": source, **target}


def _read(rows: Iterator[Row | Aside], config: DataConfig, aside: list[Aside]) -> Iterator[tuple[Row, Clip]]:
    """Those whose frames can be read; the others, and single frames, are put into the list."""
    for row in rows:
        if isinstance(row, Aside):
            aside.append(row)
            continue
        image = config.image
        clip = read_clip(row.fields.pop("frames"), image.size, image.channels, config.longest)
        if isinstance(clip, str):
            aside.append(Aside(row.place, clip))
            continue
        aside += [
            Aside(f"{row.place}, {name}", f"{why}; the other frames are used") for name, why in clip.lost
        ]
        yield row, clip


def _listed(label: str | list[str]) -> list[str]:
    return [label] if isinstance(label, str) else label


def _statistics(rows: list[Row]) -> Statistics:
    """Those of the channels of all frames."""
    return Statistics.of(_pixels(row.fields["frames"]) for row in rows)


def _pixels(frames: Levels) -> Values:
    return frames.reshape(-1, frames.shape[3]).astype(np.float32)
