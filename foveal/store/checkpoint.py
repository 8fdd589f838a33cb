"""Checkpoints: a folder of files and a manifest, which is there whole or not at all, and found if damaged.

`<folder>/<step>/` is filled under another name, brought through to the disk and renamed. It is never
written again. Only when it is durable are older ones removed; the last two stay.
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
    """A checkpoint of a version to come."""


@dataclass(frozen=True)
class Checkpoint:
    """The files of a checkpoint, all verified."""

    path: Path
    files: dict[str, bytes]


def save(folder: Path, step: int, files: dict[str, bytes], previous: Path | None) -> Path:
    """Write `files` as the newest checkpoint, then remove all others except `previous`.

    What a process that was killed had begun is removed too. A second checkpoint of the same step becomes
    `<step>-2`. Raises RunFailed if the disk is full (say); the checkpoints that were there stay.
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
    for other in (*_oldest_first(folder), *_unfinished(folder)):  # what else is there is not ours
        if other not in (path, previous):
            shutil.rmtree(other, ignore_errors=True)
    return path


def load_latest(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint whose every byte verifies, and one line for each newer one that does not.

    None if there is no checkpoint yet; UserError if there are, and all are damaged.
    """
    damaged: list[str] = []
    for path in reversed(_oldest_first(folder)):
        try:
            return Checkpoint(path, _read_verified(path)), damaged
        except NewerFormatError:
            raise  # to go on from an older one would lose it
        except UserError as error:
            damaged.append(str(error))
    if damaged:
        raise UserError(
            f"{folder}: no checkpoint can be used (restore one, or train a new run): {'; '.join(damaged)}"
        )
    return None, []


def _oldest_first(folder: Path) -> list[Path]:
    """From the oldest to the newest."""
    found = []
    for path in folder.iterdir():
        if match := re.fullmatch(r"(\d+)(?:-(\d+))?", path.name):
            found.append((int(match[1]), int(match[2] or 1), path))
    return [path for _, _, path in sorted(found)]


def _unfinished(folder: Path) -> list[Path]:
    """Of processes that are gone, for one alone trains a run."""
    return [path for path in folder.iterdir() if re.fullmatch(r"\.\d+(-\d+)?\.part", path.name)]


def _read_verified(path: Path) -> dict[str, bytes]:
    manifest = open_json(_read(path / MANIFEST), str(path / MANIFEST))
    if not isinstance(manifest.get("format"), int) or not isinstance(manifest.get("files"), dict):
        raise UserError(f"{path / MANIFEST}: not of a checkpoint")
    if manifest["format"] > FORMAT_VERSION:
        raise NewerFormatError(f"{path}: written by a newer version of Foveal: upgrade it to go on")
    files = {}
    for name, facts in manifest["files"].items():
        if not re.fullmatch(r"\w+\.(safetensors|json)", name):
            raise UserError(f"{path / name}: neither safetensors nor JSON; Foveal reads nothing else")
        files[name] = _read(path / name)
        if facts != {"bytes": len(files[name]), "sha256": hashlib.sha256(files[name]).hexdigest()}:
            raise UserError(f"{path / name}: damaged: its content does not fit {MANIFEST}")
    return files


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: can't read: {error.strerror}") from None
