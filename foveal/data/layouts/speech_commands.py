"""Speech Commands: a folder for each word, with lists of the recordings to validate and test with."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path

from foveal.data.core.hash_split import SplitName
from foveal.data.files.data_part import DataPart
from foveal.data.layouts.layout import Layout, LayoutSplit

LISTS: dict[SplitName, str] = {"valid": "validation_list.txt", "test": "testing_list.txt"}
NOISE = "_background_noise_"
"""The folder with recordings of no word."""
SUFFIX = ".wav"


def find(part: DataPart) -> Layout | None:
    if not {*LISTS.values()} <= {*part.listing.files}:
        return None
    tables = {split: part.path / name for split, name in LISTS.items()}
    lists = {split: _names(table) for split, table in tables.items()}
    if not all(names and (part.path / names[0]).is_file() for names in lists.values()):
        return None
    held_out = {name for names in lists.values() for name in names}
    words = [part.path / word for word in part.listing.folders if word != NOISE]
    splits: dict[SplitName, LayoutSplit] = {
        "train": _split(part, [*words, *tables.values()], lambda: _recordings(part, held_out))
    }
    for split, table in tables.items():
        splits[split] = _split(part, [table], partial(_names, table))
    noise = f" ({NOISE} not read)" if NOISE in part.listing.folders else ""
    return Layout(f"{' and '.join(LISTS.values())} name recordings, as in Speech Commands{noise}", splits)


def _split(part: DataPart, tables: Sequence[Path], names: Callable[[], Iterable[str]]) -> LayoutSplit:
    """Return a split of the recordings `names`, whose folders are their labels."""
    return LayoutSplit(
        tables, part.path, ["label"], lambda: ((name, name.partition("/")[0]) for name in names())
    )


def _recordings(part: DataPart, held_out: AbstractSet[str]) -> Iterator[str]:
    """Yield the recordings in the folders of words that are not `held_out`."""
    for name in part.listing.walk():
        if name.endswith(SUFFIX) and name.partition("/")[0] not in (name, NOISE) and name not in held_out:
            yield name


def _names(table: Path) -> list[str]:
    return table.read_text("utf-8", errors="surrogateescape").split("\n")[:-1]
