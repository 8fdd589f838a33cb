"""Folders whose files are named by tables of other forms, rewritten once as `metadata.jsonl` in the cache."""

import hashlib
import json
import os
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path, PurePath
from typing import NamedTuple

from foveal.core.errors import UserError
from foveal.data import layouts
from foveal.data.core.hash_split import SplitName
from foveal.data.files.data_part import METADATA_FILES, DataPart
from foveal.data.files.folders import FILE_NAME_COLUMN
from foveal.data.files.tables import REASON_KEY
from foveal.store.cache import ORIGINS_FILE, file_lock, layout_folder
from foveal.store.durable import atomic_folder, write_synced

VERSION = 2
"""Changes with the rules of reading and writing, so that older tables are not used."""
OTHER_LINK = "files"
"""The name of the link to a folder with files whose own name can't be used."""


class LayoutRow(NamedTuple):
    """A row of the user's tables."""

    origin: str
    """The place of the row, such as `flickr/captions.txt, line 7`."""
    values: Sequence[object] | str
    """The name of the file and the columns, or the reason why the row can't be used."""


class LayoutSplit(NamedTuple):
    """The files of a split, with their texts or labels."""

    tables: Sequence[Path]
    """The files that are read. If one changes, the rows are read again."""
    folder: Path
    """The folder to which the names of files are relative."""
    columns: Sequence[str]
    """The names of the columns beside that of the files, such as `text`."""
    read_rows: Callable[[], Iterable[LayoutRow]]
    """A function that reads the rows."""
    rule: str = ""
    """How the rows are read, if the files of the folder decide so. If `rule` changes, the rows are read
    again."""


class Layout(NamedTuple):
    """The splits of a folder whose tables are not `metadata.csv`."""

    reason: str
    """A clause that says what was recognized."""
    splits: Mapping[SplitName, LayoutSplit]
    folder: Path | None = None
    """The folder with the files, if that is not DATA."""


def find_layout(part: DataPart) -> Layout | None:
    """Return the layout of a folder, or of a file with one of the `FILE_SUFFIXES` of a layout. None for data
    that are read as they stand.

    Raises: UserError: several tables name the same files, a folder can't be listed, or a file with the name
        of a known table can't be read.
    """
    if not (part.is_disk_folder or part.is_file):
        return None
    for info in pkgutil.iter_modules(layouts.__path__, f"{layouts.__name__}."):
        module = import_module(info.name)
        find: Callable[[DataPart], Layout | None] | None = getattr(module, "find", None)
        is_read = part.is_disk_folder or part.suffix in getattr(module, "FILE_SUFFIXES", ())
        if find is not None and is_read and (layout := find(part)) is not None:
            return layout
    return None


def has_file(folder: Path, name: str) -> bool:
    """Return whether `name` is a relative path, without `..`, of a file in `folder`."""
    path = PurePath(name)
    return not path.is_absolute() and ".." not in path.parts and os.path.isfile(folder / path)


def write_layout(layout: Layout, part: DataPart) -> Path:
    """Return a folder of the cache with `metadata.jsonl` and a link to the files, for each split of `part`.

    A row that can't be used is written with its reason.

    Raises: UserError: a table can't be read. RunFailed: the cache can't be written.
    """
    facts = [
        (split, str(each.folder.absolute()), each.columns, each.rule, [*map(_file_facts, each.tables)])
        for split, each in layout.splits.items()
    ]
    digest = hashlib.sha256(
        repr((VERSION, part.encoding, facts)).encode("utf-8", "surrogateescape")
    ).hexdigest()[:16]
    folder = layout_folder(digest) / (part.path.name or "data")
    with file_lock(folder):
        if not folder.is_dir():
            # All tables are read before anything is written, so that no error is told as one of the cache.
            tables = {split: _read_tables(each) for split, each in layout.splits.items()}
            with atomic_folder(folder) as new:
                for split, files in tables.items():
                    below = new / split if len(tables) > 1 else new
                    below.mkdir(exist_ok=True)
                    link = below / _link_name(layout.splits[split])
                    link.symlink_to(layout.splits[split].folder.absolute(), target_is_directory=True)
                    for name, content in files.items():
                        write_synced(below / name, content)
    return folder


def _file_facts(path: Path) -> tuple[str, int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise UserError(f"{path}: can't read: {error.strerror}") from None
    return str(path.absolute()), status.st_size, status.st_mtime_ns


def _link_name(split: LayoutSplit) -> str:
    """Return the name of the link to the folder with the files: that of the folder, as messages tell it."""
    name = split.folder.name
    return OTHER_LINK if not name or name.startswith((".", "__")) or name in METADATA_FILES else name


def _read_tables(split: LayoutSplit) -> dict[str, bytes]:
    """Return the contents of `metadata.jsonl`, and of the file with the user's table and then the origin of
    each line."""
    folder, names = _link_name(split), [FILE_NAME_COLUMN, *split.columns]
    lines, origins = list[str](), [split.tables[0] if len(split.tables) == 1 else split.folder]
    for origin, values in split.read_rows():
        if isinstance(values, str):
            row: dict[str, object] = {REASON_KEY: values}
        else:
            row = dict(zip(names, (f"{folder}/{values[0]}", *values[1:]), strict=True))
        lines.append(json.dumps(row))
        origins.append(Path(origin))
    return {METADATA_FILES[1]: _joined(lines), ORIGINS_FILE: _joined(map(os.path.abspath, origins))}


def _joined(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
