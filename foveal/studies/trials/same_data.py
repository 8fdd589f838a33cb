"""Runs whose losses can be compared: those with the same rows and the same processors."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.store.manifest import data_facts, read_manifest
from foveal.tasks.warm_start import INITIAL_WEIGHTS_FILE


def check_same_data(runs: Sequence[Path], splits: Collection[str] = ()) -> None:
    """Check that runs have read the same rows of all splits, or of some, by the same processors.

    Raises: UserError: two runs differ.
    """
    first = _data_hashes(runs[0], splits)
    for run in runs[1:]:
        hashes = _data_hashes(run, splits)
        if differing := [name for name in {**first, **hashes} if first.get(name) != hashes.get(name)]:
            raise UserError(
                f"{run}: {differing[0]} is not that of {runs[0]}, so their losses can't be compared"
            )


def _data_hashes(path: Path, splits: Collection[str]) -> dict[str, Any]:
    """Return the hashes of the splits and of the processor's files."""
    manifest = read_manifest(path)
    parts = data_facts(manifest, path).facts.parts
    files = {name: sha256 for name, sha256 in manifest["files"].items() if name.startswith("inputs/")}
    files.pop(f"inputs/{INITIAL_WEIGHTS_FILE}", None)
    chosen = {name: part.sha256 for name, part in parts.items() if not splits or name in splits}
    return {f"the split {name}": sha256 for name, sha256 in chosen.items()} | files
