"""Folders whose `facts.json` has the hashes of all their files, its own among them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.store.durable import file_sha256, write_synced
from foveal.store.regular_files import read_regular
from foveal.store.sealed_json import open_json, seal_json

FACTS_FILE = "facts.json"


def seal_folder(folder: Path, facts: dict[str, Any]) -> None:
    """Write the facts about a folder, whose files are complete, and the hashes of the files."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    hashes = {path.relative_to(folder).as_posix(): file_sha256(path) for path in paths}
    write_synced(folder / FACTS_FILE, seal_json(facts | {"files": hashes}))


def open_sealed_folder(folder: Path, log: Callable[[str], None]) -> dict[str, Any] | None:
    """Return the facts of a folder whose files are as they were sealed; else None, and log which is not."""
    if not folder.is_dir():
        return None
    path = folder / FACTS_FILE
    try:
        facts: dict[str, Any] = open_json(read_regular(path), str(path))
        for name, sha256 in facts["files"].items():
            path = folder / name
            if file_sha256(path) != sha256:
                raise ValueError
        return facts
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UserError):
        log(f"{path}: damaged or edited, so the data are prepared again")
        return None
