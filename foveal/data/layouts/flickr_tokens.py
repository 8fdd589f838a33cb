"""Flickr8k and Flickr30k: `Flickr8k.token.txt` with lines `1.jpg#0`, a tab, and one of several captions.

Lists such as `Flickr_8k.devImages.txt` beside the table name the pictures of each split.
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from foveal.data.core.hash_split import SPLITS, SplitName
from foveal.data.files.aligned import read_lines
from foveal.data.files.data_part import DataPart
from foveal.data.files.split_names import split_of_name
from foveal.data.layouts.layout import Layout, LayoutRow, LayoutSplit, has_file

SUFFIXES = (".token", ".token.txt")
LEMMAS = ".lemma."
"""A part of the names of tables with the base forms of the captions' words."""
LIST_SUFFIX = "Images.txt"
"""The end of the names of lists of the pictures of a split."""
MAX_LOOKED_AT = 20
"""Folders, and first rows, that are looked at."""


def find(part: DataPart) -> Layout | None:
    listing = part.listing
    for folder in ("", *listing.folders[:MAX_LOOKED_AT]):
        names = listing.below(folder).files if folder else listing.files
        for name in names:
            if name.endswith(SUFFIXES) and LEMMAS not in name:
                table = part.path / folder / name
                rows = islice(_rows(table, None, True, part.encoding), MAX_LOOKED_AT)
                first = [str(row.values[0]) for row in rows if not isinstance(row.values, str)]
                for pictures in (part.path, *(part.path / each for each in listing.folders)):
                    if any(has_file(pictures, file) for file in first):
                        return _layout(table, _lists(table.parent, names), pictures, part.encoding)
    return None


def _lists(folder: Path, names: list[str]) -> dict[SplitName, Path]:
    """Return the lists of pictures of each split; empty if there is none for `train`."""
    named = {split_of_name(name): folder / name for name in names if name.endswith(LIST_SUFFIX)}
    return {split: named[split] for split in SPLITS if split in named} if "train" in named else {}


def _layout(table: Path, lists: dict[SplitName, Path], folder: Path, encoding: str) -> Layout:
    reason = f"{table.name} names the pictures in {folder.name} as that of Flickr8k"
    if not lists:
        read = partial(_rows, table, None, True, encoding)
        return Layout(reason, {"train": LayoutSplit([table], folder, ["text"], read)})
    splits = {
        split: LayoutSplit(
            [table, names], folder, ["text"], partial(_rows, table, names, split == "train", encoding)
        )
        for split, names in lists.items()
    }
    return Layout(f"{reason}, and {', '.join(each.name for each in lists.values())} those of splits", splits)


def _rows(table: Path, names: Path | None, has_damaged: bool, encoding: str) -> Iterator[LayoutRow]:
    """Yield the captions of the pictures in the list `names`, or of all. A damaged row is of no picture, and
    is yielded only if `has_damaged`."""
    listed = None if names is None else {line.text.strip() for line in read_lines(names, encoding)}
    for line in read_lines(table, encoding):
        name, tab, text = line.text.rstrip("\r\n").partition("\t")
        file = name.rpartition("#")[0]
        if file and tab:
            if listed is None or file in listed:
                yield LayoutRow(f"{table}, line {line.number}", [file, text])
        elif has_damaged and (line.reason or line.text.strip()):
            reason = line.reason or "not a picture, # and a number, a tab and a caption; fix the row"
            yield LayoutRow(f"{table}, line {line.number}", reason)
