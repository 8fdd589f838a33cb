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
from foveal.data.core.classes import Numbers, class_names, names_to_json, numbering, open_names
from foveal.data.core.examples import Column, Examples
from foveal.data.core.prepared_data import NOTHING, Taken
from foveal.data.core.rows import Aside, Row, keep
from foveal.data.core.split_data import Part, hashed
from foveal.data.core.standardize import FILE as CHANNELS
from foveal.data.core.standardize import Statistics, Values, reading
from foveal.data.images.image_decoding import Pixels, enlarged, enlarged_shape
from foveal.data.images.image_files import labelled_pictures, unlabelled_pictures
from foveal.data.images.image_rows import decoded

LABELS = "labels.json"
FILE = "images.json"


@runtime_checkable
class Seen(Protocol):
    """What is seen of images: squares of `size` pixels, standardised by the channels' statistics."""

    @property
    def statistics(self) -> Statistics: ...

    @property
    def size(self) -> int: ...

    def told(self, columns: Mapping[str, Tensor]) -> str:
        """In words, what belongs to one image of a batch; `columns` are its own."""


@dataclass(frozen=True)
class ImageInputs:
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
    def numbers(self) -> Callable[[Sequence[str]], Numbers | str]:
        """Of labels, or why one has none."""
        return numbering(self.labels)

    def told(self, columns: Mapping[str, Tensor]) -> str:
        """The label; of two images that were mixed both, with the share of the first."""
        name = self.labels[int(columns["label"])]
        if "other" not in columns:
            return name
        return f"{name} {100 * columns['share']:.0f} %, {self.labels[int(columns['other'])]}"

    def files(self) -> dict[str, bytes]:
        return seen_files(self) | {LABELS: names_to_json(self.labels)}


def seen_files(inputs: Seen) -> dict[str, bytes]:
    """What a run keeps of it."""
    size = json.dumps({"size": inputs.size})
    return {CHANNELS: inputs.statistics.to_json().encode(), FILE: size.encode()}


def open_seen(folder: Path) -> tuple[Statistics, int]:
    """What `seen_files` gave, below `folder`."""
    with reading(folder / FILE):
        size = int(json.loads((folder / FILE).read_bytes())["size"])
    return Statistics.load(folder), size


@dataclass(frozen=True)
class Pictures(Examples):
    """Column `picture`, the number of each row's picture, and what belongs to it, such as its `label`.

    Small ones are kept as they are: of what is asked for, both sides are at least `inputs.size`.
    """

    inputs: Seen
    kept: Sequence[Pixels]

    @classmethod
    def of(cls, pictures: Iterable[Pixels], inputs: Seen, **columns: Column) -> "Pictures":
        """One and the same array is kept once."""
        numbers: dict[int, int] = {}
        kept: list[Pixels] = []
        which = []
        for picture in pictures:
            number = numbers.setdefault(id(picture), len(kept))
            if number == len(kept):
                kept.append(picture)
            which.append(number)
        return cls({"picture": np.array(which, np.int64), **columns}, inputs, kept)

    def __getitem__(self, row: int) -> Pixels:
        """(H, W, C)"""
        return enlarged(self.kept[int(self.columns["picture"][row])], self.inputs.size)

    def shapes_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """(B, 2)"""
        numbers = np.asarray(self.columns["picture"])[rows]
        sides = [self.kept[number].shape for number in numbers]
        return np.array([enlarged_shape(side[0], side[1], self.inputs.size) for side in sides], np.int64)

    def centre(self, row: int) -> Pixels:
        """(size, size, C)"""
        picture, size = self[row], self.inputs.size
        top, left = ((side - size) // 2 for side in picture.shape[:2])
        return picture[top : top + size, left : left + size]


class PictureForm:
    """What forms of images have in common: images that wait for an answer."""

    def read_questions(self, data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
        """A picture, or all of a folder or zip; `source` is the name of the file."""
        for row in decoded(unlabelled_pictures(data), config.image, aside):
            yield Row(row.place, {"source": row.fields["name"], **row.fields})

    def encode_questions(
        self, rows: list[Row], inputs: Seen, config: DataConfig, aside: list[Aside]
    ) -> tuple[list[Row], Pictures]:
        return rows, Pictures.of((row.fields["picture"] for row in rows), inputs)


class ImageForm(PictureForm):
    """A `Form`."""

    def read(self, data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
        """The labelled images at a path: fields `source` (the sha256 of the pixels), `picture` (H, W, C), the
        `name` of the file and `label`."""
        for row in decoded(labelled_pictures(data, config.label), config.image, aside):
            label = row.fields["label"]
            if label.splitlines() != [label]:  # labels are written beside pictures, and in tables
                aside.append(Aside(row.place, f"the label {label!r} has a line end in it; rename it"))
                continue
            yield Row(row.place, {"source": row.fields["content"], **row.fields})

    def make_inputs(
        self, data: str, rows: list[Row], config: DataConfig, taken: Taken = NOTHING
    ) -> ImageInputs:
        labels = (row.fields["label"] for row in rows)
        alike = f"all of the {len(rows):,} images to train on have the label"
        names = class_names(data, labels, alike, known=taken.labels)
        return ImageInputs(taken.source or statistics_of(rows), names, config.image.size)

    def encode(
        self, rows: list[Row], inputs: ImageInputs, config: DataConfig, aside: list[Aside]
    ) -> Part[Pictures]:
        """Column `label` beside the pictures."""
        kept, numbers = keep(rows, lambda row: inputs.numbers([row.fields["label"]]), aside)
        wanted = ("name", "label", "source")
        names, labels, contents = ([row.fields[name] for row in kept] for name in wanted)
        pictures = (row.fields["picture"] for row in kept)
        column = np.array(numbers, np.int64).reshape(-1)
        sha256 = hashed(zip(contents, labels, strict=True))
        return Part(names, labels, Pictures.of(pictures, inputs, label=column), [], {}, sha256, contents)

    def open_inputs(self, folder: Path) -> ImageInputs:
        """What `ImageInputs.files` gave, below `folder`."""
        statistics, size = open_seen(folder)
        return ImageInputs(statistics, open_names(folder / LABELS), size)


def statistics_of(rows: list[Row]) -> Statistics:
    """Those of the channels of all pictures, each of which counts once, whatever is said of it."""
    once = {id(row.fields["picture"]): row.fields["picture"] for row in rows}
    return Statistics.of(_pixels([*once.values()]))


def _pixels(pictures: list[Pixels]) -> Iterator[Values]:
    """Those of many pictures (N, C) at a time."""
    many = 256
    for start in range(0, len(pictures), many):
        some = pictures[start : start + many]
        yield np.concatenate([picture.reshape(-1, picture.shape[-1]) for picture in some]).astype(np.float32)
