"""LibriSpeech: `84/121123/84-121123.trans.txt`, whose lines are names of recordings beside it, and texts."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from foveal.data.core.hash_split import SPLITS, SplitName
from foveal.data.files.aligned import read_lines
from foveal.data.files.data_part import DataPart
from foveal.data.files.split_names import split_of_name
from foveal.data.layouts.layout import Layout, LayoutRow, LayoutSplit

TABLE_SUFFIX, SUFFIX = ".trans.txt", ".flac"
MAX_LOOKED_AT = 1000
"""First files that are looked at."""


def find(part: DataPart) -> Layout | None:
    if not any(name.endswith(TABLE_SUFFIX) for name in islice(part.listing.walk(), MAX_LOOKED_AT)):
        return None
    names = [name for name in part.listing.walk() if name.endswith(TABLE_SUFFIX)]
    tables: dict[SplitName | None, list[str]] = {}
    for name in names:
        tables.setdefault(_split_of_folders(name), []).append(name)
    if "train" not in tables:
        tables = {"train": names}
    splits = {split: _split(part, tables[split]) for split in SPLITS if split in tables}
    unused = f" ({len(tables[None]):,} in folders of no split not read)" if None in tables else ""
    first = tables["train"][0]
    return Layout(f"files such as {first} have the texts of recordings, as in LibriSpeech{unused}", splits)


def _split_of_folders(name: str) -> SplitName | None:
    """Return the split that the outermost folder with the name of a split stands for."""
    splits = map(split_of_name, name.split("/")[:-1])
    return next((split for split in splits if split is not None), None)


def _split(part: DataPart, names: Sequence[str]) -> LayoutSplit:
    read = partial(_rows, part.path, names, part.encoding)
    return LayoutSplit([part.path / name for name in names], part.path, ["text"], read)


def _rows(folder: Path, names: Sequence[str], encoding: str) -> Iterator[LayoutRow]:
    for name in names:
        inside = name.rpartition("/")[0]
        for line in read_lines(folder / name, encoding):
            origin = f"{folder / name}, line {line.number}"
            recording, space, text = line.text.rstrip("\r\n").partition(" ")
            if space and not line.reason:
                file = f"{inside}/{recording}{SUFFIX}" if inside else f"{recording}{SUFFIX}"
                yield LayoutRow(origin, [file, text])
            elif line.reason or recording:
                yield LayoutRow(origin, line.reason or "no text after the name of a recording; fix the row")
