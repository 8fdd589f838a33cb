"""The cache of named public data sets.

A data set is made once: from a package with a fixed version and sha256, from files of the running Python, or
by computation.
"""

import os
from difflib import get_close_matches
from pathlib import Path

from foveal.config import suggest
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.data.datasets.dataset_registry import DatasetEntry, registered_datasets
from foveal.data.datasets.package_download import package_files
from foveal.data.files.archives import NamedContents
from foveal.store.cache import cache_folder, file_lock, values_folder
from foveal.store.durable import atomic_folder, write_synced


def dataset_entry(name: str) -> DatasetEntry:
    """Return the entry with this name.

    Raises: UserError: there is no such entry. The message suggests the nearest name.
    """
    for entry in registered_datasets():
        if entry.name == name:
            return entry
    raise UserError(f"no data set '{name}'{suggest(name, dataset_names())}")


def dataset_names() -> list[str]:
    return [entry.name for entry in registered_datasets()]


def get_dataset(name: str, log: Log) -> Path:
    """Return the folder of a data set in the user's cache.

    The first call creates the data set, and logs its progress.
    """
    entry = dataset_entry(name)
    folder = cache_folder() / "data" / f"{name}-{entry.version}"
    with file_lock(folder):
        if folder.is_dir():
            return folder
        if entry.package is None:
            log(f"{name}: making it in {folder}")
            _write_files(entry.make((), log), folder)
            return folder
        _write_files(entry.make(package_files(name, entry.package, log), log), folder)
        log(f"{name}: in {folder}")
    return folder


def resolve(data: str, log: Log) -> str:
    """Return DATA if it is a path, or two paths `a,b`; otherwise the folder of the data set with that name.

    Raises: UserError: there is no such path and no data set with that name.
    """
    if os.path.exists(data) or "," in data:
        return data
    if os.path.islink(data):
        raise UserError(f"{data}: a link to {os.readlink(data)}, which does not exist; mend the link")
    if (folder := Path(data).parent).parent == values_folder(""):
        raise UserError(
            f"the values in memory were kept in {folder}, which is gone: call foveal.train with the same "
            "values, which writes them again"
        )
    if data in dataset_names():
        return str(get_dataset(data, log))
    if "/" in data or Path(data).suffix:
        raise UserError(f"{data}: no such file or folder{_similar_path(Path(data))}")
    raise UserError(
        f"{data}: no such file or folder, and no data set of that name{suggest(data, dataset_names())} "
        "(foveal data list)"
    )


def _similar_path(path: Path) -> str:
    """Suggest the nearest name in the folder of `path`; empty if no name is near."""
    names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    close = get_close_matches(path.name, names, n=1)
    return f"; did you mean '{path.parent / close[0]}'?" if close else ""


def _write_files(files: NamedContents, folder: Path) -> None:
    """Write all files, or nothing."""
    with atomic_folder(folder) as new:
        for name, content in files:
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_synced(path, content)
