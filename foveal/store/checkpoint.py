"""Checkpoints: folders of files with a manifest, which exist completely or not at all, and detect damage.

`<folder>/<step>/` is filled under another name, synced to the disk and renamed. A finished checkpoint is
never changed. Older checkpoints are removed only after the new checkpoint is durable. The last two
checkpoints stay.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.store import durable
from foveal.store.regular_files import read_regular
from foveal.store.sealed import open_json, seal_json

MANIFEST = "manifest.json"
FORMAT_VERSION = 2
"""Since 2, state.json has the hashes of the logs, and the manifest has the fingerprint of the run."""


class NewerFormatError(UserError):
    """A checkpoint that a newer version of Foveal wrote."""


@dataclass(frozen=True)
class Checkpoint:
    """The files of a checkpoint, all verified."""

    path: Path
    files: dict[str, bytes]
    format: int = FORMAT_VERSION


Files = Iterable[tuple[str, Sequence[durable.Chunk]]]
"""Names and contents of files, each content in pieces."""


def save(folder: Path, step: int, files: Files, previous: Path | None, run: str) -> Path:
    """Write `files` as the newest checkpoint, then remove all others of the same run except `previous`. Each
    file is written before the next one is asked for.

    `run` is the fingerprint of the run. Only folders that carry it are removed, because `folder` may be a
    link to a place with other folders: finished checkpoints have it in their manifest, and unfinished ones
    of killed processes in their name. A second checkpoint of the same step becomes `<step>-2`. If writing
    fails, the existing checkpoints stay.

    Raises: RunFailed: writing failed, for instance because the disk is full.
    """
    path, count = folder / str(step), 1
    while os.path.lexists(path):
        count += 1
        path = folder / f"{step}-{count}"
    with durable.atomic_folder(path, f".{path.name}{_part_suffix(run)}") as part:
        listed = {}
        for name, chunks in files:
            durable.write_synced(part / name, *chunks)
            listed[name] = {"bytes": sum(map(len, chunks)), "sha256": durable.sha256_of(chunks)}
        manifest = {"format": FORMAT_VERSION, "run": run, "files": listed}
        durable.write_synced(part / MANIFEST, seal_json(manifest))
    old = [other for other in _oldest_first(folder) if other not in (path, previous)]
    for other in (*filter(lambda each: _belongs_to(each, run), old), *_unfinished(folder, run)):
        shutil.rmtree(other, ignore_errors=True)
    return path


def load_latest(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """Return the newest undamaged checkpoint, and a line about each newer damaged checkpoint.

    The checkpoint is None if there is none yet. Every byte is verified.

    Raises: UserError: there are checkpoints, and all are damaged.
    """
    damaged: list[str] = []
    for path in reversed(_oldest_first(folder)):
        try:
            return _read_verified(path), damaged
        except NewerFormatError:
            raise  # continuing from an older checkpoint would lose this one
        except UserError as error:
            damaged.append(str(error))
    if damaged:
        raise UserError(
            f"{folder}: no checkpoint can be used (restore one, or train a new run): {'; '.join(damaged)}"
        )
    return None, []


def _oldest_first(folder: Path) -> list[Path]:
    """Return the folders of checkpoints from the oldest to the newest. A run that was sent may have none."""
    checkpoints = []
    for path in folder.iterdir() if folder.is_dir() else ():
        if match := re.fullmatch(r"(\d+)(?:-(\d+))?", path.name):
            checkpoints.append((int(match[1]), int(match[2] or 1), path))
    return [path for _, _, path in sorted(checkpoints)]


def _part_suffix(run: str) -> str:
    """Return the end of the names of unfinished checkpoints of a run."""
    return f".{run[:16]}.part"


def _unfinished(folder: Path, run: str) -> list[Path]:
    """Return unfinished folders of a run. Their processes are gone, since only one process trains a run."""
    name = rf"\.\d+(-\d+)?{re.escape(_part_suffix(run))}"
    return [path for path in folder.iterdir() if re.fullmatch(name, path.name) and not path.is_symlink()]


def _belongs_to(path: Path, run: str) -> bool:
    """Return whether a folder is a checkpoint of the run."""
    try:
        return not path.is_symlink() and _read_manifest(path).get("run") == run
    except UserError:
        return False


def _read_verified(path: Path) -> Checkpoint:
    """Read a checkpoint, and compare its files with the manifest.

    Raises: UserError: a file is missing or damaged.
    """
    manifest = _read_manifest(path)
    if manifest["format"] > FORMAT_VERSION:
        raise NewerFormatError(f"{path}: written by a newer version of Foveal: upgrade Foveal to continue")
    files = {}
    for name, facts in manifest["files"].items():
        if not re.fullmatch(r"\w+\.(safetensors|json)", name):
            raise UserError(f"{path / name}: neither safetensors nor JSON, the only formats of checkpoints")
        files[name] = read_regular(path / name)
        if facts != {"bytes": len(files[name]), "sha256": hashlib.sha256(files[name]).hexdigest()}:
            raise UserError(f"{path / name}: damaged: its content does not match {MANIFEST}")
    return Checkpoint(path, files, manifest["format"])


def _read_manifest(path: Path) -> dict[str, Any]:
    """Read the manifest of a checkpoint.

    Raises: UserError: the manifest is missing, damaged, or not that of a checkpoint.
    """
    manifest = open_json(read_regular(path / MANIFEST), str(path / MANIFEST))
    if type(manifest.get("format")) is not int or not isinstance(manifest.get("files"), dict):
        raise UserError(
            f"{path / MANIFEST}: not the manifest of a checkpoint; restore the checkpoint or remove it"
        )
    return manifest
