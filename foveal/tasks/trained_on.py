"""Which data a run was trained on."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.data.open import OpenedData
from foveal.store.run import RunFolder


def was_trained_on(run: RunFolder, data: str, facts: dict[str, Any]) -> bool:
    """Return whether `data` are the training split or all of the data of a run, by their hash or path."""
    own = run.manifest["data"]
    hashes = {split: part.get("sha256") for split, part in own["facts"]["parts"].items()}
    digest = facts.get("sha256")
    if digest is not None and digest in (hashes.get("valid"), hashes.get("test")):
        return False
    is_train = digest is not None and digest == hashes.get("train")
    return is_train or (own["data"] is not None and absolute_paths(data) == own["data"])


def absolute_paths(data: str | OpenedData | None) -> str | None:
    """Return absolute paths. A name of the catalog does not change."""
    if data is None:
        return None
    name = str(data)
    names = [name] if Path(name).exists() else name.split(",")
    return ",".join(str(Path(each).absolute()) if Path(each).exists() else each for each in names)


class DataChangedError(UserError):
    """The data of a run are gone, or others than at its start."""

    def __init__(self, data: str, problem: str):
        super().__init__(f"{data}: {problem}")
        self.data = data


def check_data_exist(run: RunFolder, paths: Iterable[str | None]) -> None:
    """Check that the files of a run's data are where they were.

    Raises: DataChangedError: a file or folder is gone.
    """
    for name in filter(None, paths):
        files = [name] if Path(name).exists() else name.split(",")
        for file in files:
            if Path(file).is_absolute() and not Path(file).exists():
                raise DataChangedError(
                    file, f"gone, and {run.path} was trained on it; restore it, or name other data"
                )
