"""Speech Commands: a folder for each word, with lists of the recordings to validate and test with."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path

from foveal.data.core.hash_split import SplitName
from foveal.data.files.aligned import read_lines
from foveal.data.files.data_part import DataPart
from foveal.data.layouts.layout import Layout, LayoutRow, LayoutSplit, has_file

LISTS: dict[SplitName, str] = {"valid": "validation_list.txt", "test": "testing_list.txt"}
NOISE = "_background_noise_"
"""The folder with recordings of no word."""
SUFFIX = ".wav"
COLUMNS = ["label"]


def find(part: DataPart) -> Layout | None:
    if not {*LISTS.values()} <= {*part.listing.files}:
        return None
    tables = {split: part.path / name for split, name in LISTS.items()}
    lists = [[*_listed(table, part.encoding)] for table in tables.values()]
    named = [[str(row.values[0]) for row in rows if not isinstance(row.values, str)] for rows in lists]
    if not all(names and has_file(part.path, names[0]) for names in named):
        return None
    held_out = {name for names in named for name in names}
    words = [part.path / word for word in part.listing.folders if word != NOISE]
    read = partial(_recordings, part, held_out)
    splits: dict[SplitName, LayoutSplit] = {
        "train": LayoutSplit([*words, *tables.values()], part.path, COLUMNS, read)
    }
    for split, table in tables.items():
        splits[split] = LayoutSplit([table], part.path, COLUMNS, partial(_listed, table, part.encoding))
    noise = f" ({NOISE} not read)" if NOISE in part.listing.folders else ""
    return Layout(f"{' and '.join(LISTS.values())} name recordings, as in Speech Commands{noise}", splits)


def _recordings(part: DataPart, held_out: AbstractSet[str]) -> Iterator[LayoutRow]:
    """Yield the recordings in the folders of words that are not `held_out`. The folder is the label."""
    for name in part.listing.walk():
        word = name.partition("/")[0]
        if name.endswith(SUFFIX) and word not in (name, NOISE) and name not in held_out:
            yield LayoutRow(f"{part.path / name}", [name, word])


def _listed(table: Path, encoding: str) -> Iterator[LayoutRow]:
    """Yield the recordings of a list. The folder is the label."""
    for line in read_lines(table, encoding):
        name = line.text.strip()
        if name or line.reason:
            origin = f"{table}, line {line.number}"
            yield LayoutRow(origin, line.reason or [name, name.partition("/")[0]])
