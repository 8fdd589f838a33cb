"""CUB-200: `images.txt` numbers the pictures in `images/`; other tables say their classes and splits."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from foveal.data.core.hash_split import SplitName
from foveal.data.files.aligned import read_lines
from foveal.data.files.data_part import DataPart
from foveal.data.layouts.layout import Layout, LayoutRow, LayoutSplit

FOLDER = "images"
NAMES, LABELS, CLASSES, SPLIT = TABLES = (
    "images.txt",
    "image_class_labels.txt",
    "classes.txt",
    "train_test_split.txt",
)
SPLIT_NUMBERS: dict[str, SplitName] = {"1": "train", "0": "test"}


def find(part: DataPart) -> Layout | None:
    if FOLDER not in part.listing.folders or not {*TABLES} <= {*part.listing.files}:
        return None
    splits = {split: _split(part, split) for split in SPLIT_NUMBERS.values()}
    return Layout(f"{', '.join(TABLES)} name the pictures, as in CUB-200", splits)


def _split(part: DataPart, split: SplitName) -> LayoutSplit:
    tables = [part.path / name for name in TABLES]
    return LayoutSplit(tables, part.path / FOLDER, ["label"], partial(_rows, part.path, split, part.encoding))


def _rows(folder: Path, split: SplitName, encoding: str) -> Iterator[LayoutRow]:
    """Yield the pictures of a split. A picture of no split is a damaged row of `train`."""
    labels, classes, splits = (
        {key: value for _, key, value, _ in _read(folder / name, encoding)}
        for name in (LABELS, CLASSES, SPLIT)
    )
    for number, key, name, reason in _read(folder / NAMES, encoding):
        picture_split = SPLIT_NUMBERS.get(splits.get(key, ""))
        label = classes.get(labels.get(key, ""))
        if picture_split is None:
            reason = reason or f"no 0 or 1 in {SPLIT} for the picture {key}; add a row"
        elif label is None:
            reason = reason or f"no class of {CLASSES} in {LABELS} for the picture {key}; add a row"
        if (picture_split or "train") == split:
            yield LayoutRow(f"{folder / NAMES}, line {number}", reason or [name, label])


def _read(table: Path, encoding: str) -> Iterator[tuple[int, str, str, str]]:
    """Yield the number of each line, its first word, its second, and the reason why it can't be read."""
    for line in read_lines(table, encoding):
        key, _, value = line.text.strip().partition(" ")
        if key or line.reason:
            yield line.number, key, value, line.reason
