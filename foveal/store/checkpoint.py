"""Checkpoints: folders of files with a manifest, which exist completely or not at all, and detect damage.

`<folder>/<step>/` is filled under another name, synced to the disk and renamed. A finished checkpoint is
never changed. Older checkpoints are removed only after the new checkpoint is durable. The last two
checkpoints stay.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.store import durable
from foveal.store.checkpoint_list import list_checkpoints
from foveal.store.regular_files import open_regular, read_regular
from foveal.store.sealed import open_json, seal_json
from foveal.store.stored_tensors import is_of_group

MANIFEST = "manifest.json"
FORMAT_VERSION = 3
"""Since 2, state.json has the hashes of the logs, and the manifest has the fingerprint of the run. Since 3,
tensors may be in files of parts."""


class NewerFormatError(UserError):
    """A checkpoint that a newer version of Foveal wrote."""


@dataclass(frozen=True)
class File:
    """A file of a checkpoint, whose content was compared with the manifest."""

    path: Path = field(compare=False)
    size: int
    sha256: str

    def read(self) -> bytes:
        """Return the content."""
        return read_regular(self.path)


@dataclass(frozen=True)
class Checkpoint:
    """The files of a checkpoint, all verified."""

    path: Path
    files: dict[str, File]
    format: int = FORMAT_VERSION

    def paths(self, group: str) -> list[Path]:
        """Return the files of a group of tensors, which may be in parts."""
        return [file.path for name, file in self.files.items() if is_of_group(name, group)]


Files = Iterable[tuple[str, Sequence[durable.Chunk]]]
"""Names and contents of files, each content in pieces."""
Listing = dict[str, dict[str, Any]]
"""The sizes and hashes of files by name, as the manifest has them."""


def write_files(part: Path, path: Path, files: Files) -> Listing:
    """Write files into the folder `part` of a draft, durably. Each is written before the next one is asked
    for. `path` is the name that the draft will have.

    Raises: RunFailed: writing failed, for instance because the disk is full.
    """
    listing = Listing()
    with durable.explain_disk_errors(path):
        for name, chunks in files:
            durable.write_synced(part / name, *chunks)
            listing[name] = {"bytes": sum(map(len, chunks)), "sha256": durable.sha256_of(chunks)}
    return listing


class Draft:
    """A folder of files that is no checkpoint yet. Several processes may write files into its `part`.

    `run` is the fingerprint of the run. A second checkpoint of the same step becomes `<step>-2`.

    Raises: RunFailed: the folder can't be made.
    """

    def __init__(self, folder: Path, step: int, run: str):
        self.run, self.path, count = run, folder / str(step), 1
        while os.path.lexists(self.path):
            count += 1
            self.path = folder / f"{step}-{count}"
        self._open = durable.atomic_folder(self.path, f".{self.path.name}{_part_suffix(run)}")
        self.part = self._open.__enter__()

    def publish(self, listings: Iterable[Listing], previous: Path | None) -> Path:
        """Make the draft the newest checkpoint, after all have written their files, then remove all others of
        the same run except `previous`. Return its path.

        Only folders that carry the fingerprint of the run are removed, because the folder of checkpoints may
        be a link to a place with other folders: finished checkpoints have it in their manifest, and
        unfinished ones of killed processes in their name. If writing fails, the existing checkpoints stay.

        Raises: RunFailed: writing failed, for instance because the disk is full.
        """
        listed = {name: facts for listing in listings for name, facts in listing.items()}
        manifest = {"format": FORMAT_VERSION, "run": self.run, "files": listed}
        with self._closing():
            durable.write_synced(self.part / MANIFEST, seal_json(manifest))
        folder = self.path.parent
        old = [other for other in list_checkpoints(folder) if other not in (self.path, previous)]
        for other in (*filter(lambda each: _belongs_to(each, self.run), old), *_unfinished(folder, self.run)):
            shutil.rmtree(other, ignore_errors=True)
        return self.path

    def discard(self) -> None:
        """Remove the draft."""
        with suppress(Discarded), self._closing():
            raise Discarded

    @contextmanager
    def _closing(self) -> Iterator[None]:
        """Return a context for the last work in the folder, which then gets its name, or is removed after an
        error."""
        with ExitStack() as stack:
            stack.push(self._open)
            yield


class Discarded(Exception):
    """A draft is not wanted any more."""


def load_latest(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """Return the newest undamaged checkpoint, and a line about each newer damaged checkpoint.

    The checkpoint is None if there is none yet. Every byte is verified.

    Raises: UserError: there are checkpoints, and all are damaged.
    """
    damaged: list[str] = []
    for path in reversed(list_checkpoints(folder)):
        try:
            return verified_checkpoint(path), damaged
        except NewerFormatError:
            raise  # continuing from an older checkpoint would lose this one
        except UserError as error:
            damaged.append(str(error))
    if damaged:
        raise UserError(
            f"{folder}: no checkpoint can be used (restore one, or train a new run): {'; '.join(damaged)}"
        )
    return None, []


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


def verified_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint, and compare its files with the manifest.

    Raises: UserError: a file is missing or damaged.
    """
    manifest = _read_manifest(path)
    if manifest["format"] > FORMAT_VERSION:
        raise NewerFormatError(f"{path}: written by a newer version of Foveal: upgrade Foveal to continue")
    files = {}
    for name, facts in manifest["files"].items():
        if not re.fullmatch(r"[\w-]+\.(safetensors|json)", name):
            raise UserError(f"{path / name}: neither safetensors nor JSON, the only formats of checkpoints")
        files[name] = _hashed(path / name)
        if facts != {"bytes": files[name].size, "sha256": files[name].sha256}:
            raise UserError(f"{path / name}: damaged: its content does not match {MANIFEST}")
    return Checkpoint(path, files, manifest["format"])


def _hashed(path: Path) -> File:
    """Return the size and the hash of a file.

    Raises: UserError: the file is missing, a link or a special file.
    """
    with open(open_regular(path), "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return File(path, os.fstat(file.fileno()).st_size, digest)


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
