"""Checkpoints: folders of files with a manifest, which exist completely or not at all, and detect damage.

`<folder>/<step>/` is filled under another name, synced to the disk and renamed. A finished checkpoint is
never changed. Older checkpoints are removed only after the new checkpoint is durable. The last two
checkpoints stay.
"""

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from foveal.core.errors import UserError
from foveal.store import durable
from foveal.store.sealed import open_json, seal_json

MANIFEST = "manifest.json"
FORMAT_VERSION = 1


class NewerFormatError(UserError):
    """A checkpoint that a newer version of Foveal wrote."""


@dataclass(frozen=True)
class Checkpoint:
    """The files of a checkpoint, all verified."""

    path: Path
    files: dict[str, bytes]


def save(folder: Path, step: int, files: dict[str, bytes], previous: Path | None) -> Path:
    """Write `files` as the newest checkpoint, then remove all others except `previous`.

    Unfinished folders of killed processes are removed too. A second checkpoint of the same step becomes
    `<step>-2`. If writing fails, the existing checkpoints stay.

    Raises: RunFailed: writing failed, for instance because the disk is full.
    """
    path, count = folder / str(step), 1
    while path.exists():
        count += 1
        path = folder / f"{step}-{count}"
    with durable.atomic_folder(path) as part:
        for name, content in files.items():
            durable.write_synced(part / name, content)
        listed = {
            name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in files.items()
        }
        durable.write_synced(part / MANIFEST, seal_json({"format": FORMAT_VERSION, "files": listed}))
    for other in (*_oldest_first(folder), *_unfinished(folder)):  # other files are not Foveal's
        if other not in (path, previous):
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
            return Checkpoint(path, _read_verified(path)), damaged
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
    """Return the folders of checkpoints from the oldest to the newest."""
    checkpoints = []
    for path in folder.iterdir():
        if match := re.fullmatch(r"(\d+)(?:-(\d+))?", path.name):
            checkpoints.append((int(match[1]), int(match[2] or 1), path))
    return [path for _, _, path in sorted(checkpoints)]


def _unfinished(folder: Path) -> list[Path]:
    """Return unfinished folders. Their processes are gone, since only one process trains a run."""
    return [path for path in folder.iterdir() if re.fullmatch(r"\.\d+(-\d+)?\.part", path.name)]


def _read_verified(path: Path) -> dict[str, bytes]:
    """Read the files of a checkpoint and compare them with the manifest.

    Raises: UserError: a file is missing or damaged.
    """
    manifest = open_json(_read(path / MANIFEST), str(path / MANIFEST))
    if not isinstance(manifest.get("format"), int) or not isinstance(manifest.get("files"), dict):
        raise UserError(
            f"{path / MANIFEST}: not the manifest of a checkpoint; restore the checkpoint or remove it"
        )
    if manifest["format"] > FORMAT_VERSION:
        raise NewerFormatError(f"{path}: written by a newer version of Foveal: upgrade Foveal to continue")
    files = {}
    for name, facts in manifest["files"].items():
        if not re.fullmatch(r"\w+\.(safetensors|json)", name):
            raise UserError(f"{path / name}: neither safetensors nor JSON, the only formats of checkpoints")
        files[name] = _read(path / name)
        if facts != {"bytes": len(files[name]), "sha256": hashlib.sha256(files[name]).hexdigest()}:
            raise UserError(f"{path / name}: damaged: its content does not match {MANIFEST}")
    return files


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: can't read: {error.strerror}") from None
