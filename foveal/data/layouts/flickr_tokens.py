"""Flickr8k and Flickr30k: `Flickr8k.token.txt` with lines `1.jpg#0`, a tab, and one of several captions."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from foveal.data.files.data_part import DataPart
from foveal.data.layouts.layout import Layout, LayoutSplit

SUFFIXES = (".token", ".token.txt")
MAX_LOOKED_AT = 20
"""Folders, and first rows, that are looked at."""


def find(part: DataPart) -> Layout | None:
    listing = part.listing
    names = [name for name in listing.files if name.endswith(SUFFIXES)]
    for folder in listing.folders[:MAX_LOOKED_AT]:
        names += [f"{folder}/{name}" for name in listing.below(folder).files if name.endswith(SUFFIXES)]
    for name in names:
        first = [file for file, _ in islice(_rows(part.path / name), MAX_LOOKED_AT)]
        for pictures in (part.path, *(part.path / each for each in listing.folders)):
            if any((pictures / file).is_file() for file in first):
                return _layout(part.path / name, pictures)
    return None


def _layout(table: Path, folder: Path) -> Layout:
    reason = f"{table.name} names the pictures in {folder.name} as that of Flickr8k"
    return Layout(reason, {"train": LayoutSplit([table], folder, ["text"], lambda: _rows(table))})


def _rows(table: Path) -> Iterator[tuple[str, str]]:
    with table.open(encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            name, _, text = line.rstrip("\n").partition("\t")
            if "#" in name:
                yield name.rpartition("#")[0], text
