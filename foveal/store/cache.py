"""The user's cache: what can be made again at any time, so that it is made only once."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foveal.core.errors import UserError
from foveal.store.locks import lock


def cache_folder() -> Path:
    """`FOVEAL_CACHE`, else `foveal` in the user's cache (`XDG_CACHE_HOME`, `~/.cache`)."""
    chosen = os.environ.get("FOVEAL_CACHE")
    if chosen:
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "foveal"


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Only one process at a time is inside for each `path`, whose folder is made; a killed one lets go."""
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
