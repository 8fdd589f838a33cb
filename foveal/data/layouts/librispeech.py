"""LibriSpeech: `84/121123/84-121123.trans.txt`, whose lines are names of recordings beside it, and texts."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from foveal.data.core.hash_split import SPLITS, SplitName
from foveal.data.files.data_part import DataPart
from foveal.data.files.split_names import split_of_name
from foveal.data.layouts.layout import Layout, LayoutSplit

TABLE_SUFFIX, SUFFIX = ".trans.txt", ".flac"
MAX_LOOKED_AT = 1000
"""First files that are looked at."""


def find(part: DataPart) -> Layout | None:
    if not any(name.endswith(TABLE_SUFFIX) for name in islice(part.listing.walk(), MAX_LOOKED_AT)):
        return None
    tables: dict[SplitName, list[str]] = {split: [] for split in SPLITS}
    names = [name for name in part.listing.walk() if name.endswith(TABLE_SUFFIX)]
    has_train = any(split_of_name(name.partition("/")[0]) == "train" for name in names)
    for name in names:
        split = split_of_name(name.partition("/")[0]) if has_train else None
        tables[split or "train"].append(name)
    splits = {split: _split(part.path, names) for split, names in tables.items() if names}
    return Layout(f"files such as {names[0]} have the texts of recordings, as in LibriSpeech", splits)


def _split(folder: Path, names: Sequence[str]) -> LayoutSplit:
    return LayoutSplit([folder / name for name in names], folder, ["text"], lambda: _rows(folder, names))


def _rows(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        inside = name.rpartition("/")[0]
        with (folder / name).open(encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                recording, _, text = line.rstrip("\n").partition(" ")
                yield f"{inside}/{recording}{SUFFIX}", text
