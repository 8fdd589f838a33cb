"""The user's cache folder, for files that can be recreated at any time."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from foveal.core.errors import UserError
from foveal.store.locks import lock

ORIGINS_FILE = ".origins"
"""The file beside a rewritten table with the path of the user's table, and then the origin of each line."""


def cache_folder() -> Path:
    """Return `FOVEAL_CACHE`, else the folder `foveal` in the user's cache (`XDG_CACHE_HOME`, `~/.cache`)."""
    folder = os.environ.get("FOVEAL_CACHE")
    if folder:
        return Path(folder).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "foveal"


def unpacked_folder(digest: str) -> Path:
    """Return the folder of the files of a packed file, of which `digest` is a hash."""
    return cache_folder() / "unpacked" / digest


def remote_folder(digest: str) -> Path:
    """Return the folder of the files fetched from an object store, of which `digest` is a hash."""
    return cache_folder() / "remote" / digest


def layout_folder(digest: str) -> Path:
    """Return the folder of tables that were rewritten, of which `digest` is a hash."""
    return cache_folder() / "layouts" / digest


def values_folder(digest: str) -> Path:
    """Return the folder of a table of values in memory, of which `digest` is a hash."""
    return cache_folder() / "values" / digest


def shorten_unpacked_paths(message: str) -> str:
    """Return a message with the paths of unpacked files as in the packed file, as `reviews.zip/a.csv`.

    Fetched files have their addresses. Places in rewritten tables, and paths of files beside them, are told
    as in the user's folder. Rows of values in memory are told by their index, as `list[3]`.
    """
    row = r"(?:, (?:row|line) (?P<row>\d+))?"
    table = r"[0-9a-f]{16}/(?P<name>\w+)\.(?:parquet|jsonl|txt)"
    values = re.escape(f"{cache_folder()}/values/") + table + row
    message = re.sub(values, _index, message)
    layout = re.escape(f"{cache_folder()}/layouts/") + r"[0-9a-f]{16}(?:/[^/\n]+)"
    place = r"(?P<head>: [^:]*the first is |, )line (?P<line>\d+)"
    message = re.sub(rf"(?P<table>{layout}{{1,2}}?/metadata\.jsonl)(?:{place})?", _origin, message)
    for depth in (2, 3):
        message = re.sub(layout + f"{{{depth}}}(?=/)", _linked_folder, message)
    fetched = re.escape(f"{cache_folder()}/remote/") + "[0-9a-f]{16}/([a-z0-9+]+)/"
    message = re.sub(fetched, r"\1://", message)
    for folder in ("unpacked", "layouts"):
        message = re.sub(re.escape(f"{cache_folder()}/{folder}/") + "[0-9a-f]{16}/", "", message)
    return message


def with_short_paths(log: Callable[[str], None]) -> Callable[[str], None]:
    """Return a log whose lines have short paths (`shorten_unpacked_paths`)."""
    return lambda line: log(shorten_unpacked_paths(line))


def _index(match: re.Match[str]) -> str:
    """Return the index of a row of values in memory; without a row, the type of the values."""
    return match["name"] if match["row"] is None else f"{match['name']}[{int(match['row']) - 1}]"


def _origin(match: re.Match[str]) -> str:
    """Return the place in the user's table of a line of a rewritten table; without a line, the table."""
    try:
        origins = _read_origins(Path(match["table"]).parent / ORIGINS_FILE)
        table, origin = _as_typed(origins[0]), _as_typed(origins[int(match["line"] or 0)])
        if match["head"] in (None, ", "):
            return origin
        return table + match["head"] + origin.removeprefix(f"{table}, ")
    except (OSError, IndexError):  # removed since
        return match[0]


@lru_cache(maxsize=8)
def _read_origins(file: Path) -> list[str]:
    return file.read_text("utf-8", errors="surrogateescape").split("\n")


def _linked_folder(match: re.Match[str]) -> str:
    return _as_typed(os.path.realpath(match[0])) if os.path.islink(match[0]) else match[0]


def _as_typed(path: str) -> str:
    """Return a path below the working folder relative to that folder."""
    return path.removeprefix(f"{Path.cwd()}/")


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Return a context that only one process at a time can enter for each `path`.

    The folder of `path` is created. A killed process releases the lock.

    Raises: UserError: the cache can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.with_name(f".{path.name}.lock").open("w")
    except OSError as error:
        raise UserError(
            f"{path.parent}: can't write the cache: {error.strerror}; set FOVEAL_CACHE to another folder"
        ) from None
    with file:
        lock(file.fileno(), wait=True)
        yield
