"""Folders whose files are named by tables of other forms, rewritten once as `metadata.csv` in the cache."""

import csv
import hashlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from foveal.data import layouts
from foveal.data.core.hash_split import SplitName
from foveal.data.files.data_part import METADATA_FILES, DataPart
from foveal.data.files.folders import FILE_NAME_COLUMN
from foveal.store.cache import cache_folder, file_lock
from foveal.store.durable import atomic_folder

VERSION = 1
"""Changes with the rules of reading and writing, so that older tables are not used."""
LINK = "files"
"""The name of the link to the folder with the files."""


class LayoutSplit(NamedTuple):
    """The files of a split, with their texts or labels."""

    tables: Sequence[Path]
    """The files that are read. If one changes, the rows are read again."""
    folder: Path
    """The folder to which the names of files are relative."""
    columns: Sequence[str]
    """The names of the columns beside that of the files, such as `text`."""
    read_rows: Callable[[], Iterable[Sequence[object]]]
    """A function that reads the name of the file and the columns of each row."""


class Layout(NamedTuple):
    """The splits of a folder whose tables are not `metadata.csv`."""

    reason: str
    """A clause that says what was recognized."""
    splits: Mapping[SplitName, LayoutSplit]


def find_layout(part: DataPart) -> Layout | None:
    """Return the layout of a folder. None for a folder that is read as it stands.

    Raises: UserError: several tables name the same files.
    """
    if not part.is_disk_folder:
        return None
    for module in pkgutil.iter_modules(layouts.__path__, f"{layouts.__name__}."):
        find: Callable[[DataPart], Layout | None] | None = getattr(import_module(module.name), "find", None)
        if find is not None and (layout := find(part)) is not None:
            return layout
    return None


def write_layout(layout: Layout, part: DataPart) -> Path:
    """Return a folder of the cache with `metadata.csv` and a link to the files, for each split of `part`.

    Raises: UserError: a row of a table can't be read.
    """
    facts = [
        (split, str(each.folder.absolute()), each.columns, [*map(_file_facts, each.tables)])
        for split, each in layout.splits.items()
    ]
    digest = hashlib.sha256(
        repr((VERSION, part.encoding, facts)).encode("utf-8", "surrogateescape")
    ).hexdigest()[:16]
    folder = cache_folder() / "layouts" / digest / (part.path.name or "data")
    with file_lock(folder):
        if not folder.is_dir():
            with atomic_folder(folder) as new:
                for split, each in layout.splits.items():
                    _write_split(new / split if len(layout.splits) > 1 else new, each)
    return folder


def _file_facts(path: Path) -> tuple[str, int, int]:
    status = path.stat()
    return str(path.absolute()), status.st_size, status.st_mtime_ns


def _write_split(folder: Path, split: LayoutSplit) -> None:
    folder.mkdir(exist_ok=True)
    (folder / LINK).symlink_to(split.folder.absolute(), target_is_directory=True)
    with (folder / METADATA_FILES[0]).open(
        "w", encoding="utf-8", errors="surrogateescape", newline=""
    ) as file:
        table = csv.writer(file)
        table.writerow([FILE_NAME_COLUMN, *split.columns])
        table.writerows([f"{LINK}/{name}", *values] for name, *values in split.read_rows())
