"""CUB-200: `images.txt` numbers the pictures in `images/`; other tables say their classes and splits."""

from collections.abc import Iterator
from pathlib import Path

from foveal.core.errors import UserError
from foveal.data.core.hash_split import SplitName
from foveal.data.files.data_part import DataPart
from foveal.data.layouts.layout import Layout, LayoutSplit

FOLDER = "images"
NAMES, LABELS, CLASSES, SPLIT = TABLES = (
    "images.txt",
    "image_class_labels.txt",
    "classes.txt",
    "train_test_split.txt",
)
SPLIT_NUMBERS: dict[SplitName, str] = {"train": "1", "test": "0"}


def find(part: DataPart) -> Layout | None:
    if FOLDER not in part.listing.folders or not {*TABLES} <= {*part.listing.files}:
        return None
    splits = {split: _split(part.path, number) for split, number in SPLIT_NUMBERS.items()}
    return Layout(f"{', '.join(TABLES)} name the pictures, as in CUB-200", splits)


def _split(folder: Path, number: str) -> LayoutSplit:
    tables = [folder / name for name in TABLES]
    return LayoutSplit(tables, folder / FOLDER, ["label"], lambda: _rows(folder, number))


def _rows(folder: Path, number: str) -> Iterator[tuple[str, str]]:
    names, labels, classes, splits = (_read(folder / name) for name in TABLES)
    for key, name in names.items():
        if splits.get(key) == number:
            if classes.get(labels.get(key, "")) is None:
                raise UserError(f"{folder / LABELS}: no class of {CLASSES} for the picture {key} ({name})")
            yield name, classes[labels[key]]


def _read(table: Path) -> dict[str, str]:
    """Return the second word of each line by the first."""
    lines = table.read_text("utf-8", errors="surrogateescape").splitlines()
    return {key: value for key, _, value in (line.partition(" ") for line in lines)}
