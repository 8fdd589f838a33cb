"""The user's cache folder, for files that can be recreated at any time."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foveal.core.errors import UserError
from foveal.store.locks import lock


def cache_folder() -> Path:
    """Return `FOVEAL_CACHE`, else the folder `foveal` in the user's cache (`XDG_CACHE_HOME`, `~/.cache`)."""
    folder = os.environ.get("FOVEAL_CACHE")
    if folder:
        return Path(folder).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "foveal"


def unpacked_folder(digest: str) -> Path:
    """Return the folder of the files of a packed file, of which `digest` is a hash."""
    return cache_folder() / "unpacked" / digest


def shorten_unpacked_paths(message: str) -> str:
    """Return a message with the paths of unpacked files as in the packed file, as `reviews.zip/a.csv`."""
    return re.sub(re.escape(f"{cache_folder()}/unpacked/") + "[0-9a-f]{16}/", "", message)


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
