"""What is in a folder, or in a zip: each folder is listed once, and everyone asks the listing."""

import os
import zipfile
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from foveal.core.errors import UserError
from foveal.data.files.utf8 import AnyPath

MACOS_FOLDER = "__MACOSX"
"""The folder that macOS puts beside the files of a zip."""


class Entry(NamedTuple):
    """A file or a folder in a folder. A `link` to a folder is not walked into."""

    name: str
    is_folder: bool
    is_link: bool = False


class FileTree(ABC):
    """The files below a root, which is listed once. Hidden files and folders are left out."""

    @abstractmethod
    def entries(self, at: str) -> list[Entry]:
        """Return what is in the folder `at`, seen from the root, in order of the names."""

    @abstractmethod
    def walk(self, at: str) -> Iterator[str]:
        """Yield the names of all files below the folder `at`, seen from that folder."""

    @abstractmethod
    def path(self, at: str) -> AnyPath:
        """Return the folder `at`, seen from the root."""


class DiskTree(FileTree):
    """A folder on disk. A folder inside is listed when it is first asked for."""

    def __init__(self, root: Path):
        self._root = root
        self._folders: dict[str, list[Entry]] = {}

    def entries(self, at: str) -> list[Entry]:
        if at not in self._folders:
            self._folders[at] = self._scan(at)
        return self._folders[at]

    def _scan(self, at: str) -> list[Entry]:
        try:
            with os.scandir(self._root / at) as inside:
                found = [Entry(entry.name, entry.is_dir(), entry.is_symlink()) for entry in inside]
        except OSError as error:
            raise UserError(f"{error.filename}: can't read: {error.strerror}") from None
        return sorted(entry for entry in found if not entry.name.startswith("."))

    def walk(self, at: str) -> Iterator[str]:
        """Yield a folder's own files first, then those of its folders."""
        entries = self.entries(at)
        yield from (entry.name for entry in entries if not entry.is_folder)
        for entry in entries:
            if entry.is_folder and not entry.is_link:
                yield from (f"{entry.name}/{name}" for name in self.walk(_join(at, entry.name)))

    def path(self, at: str) -> Path:
        return self._root / at


class ZipTree(FileTree):
    """The inside of a zip, whose members are gone through once."""

    def __init__(self, archive: zipfile.Path):
        self._archive = archive

    @cached_property
    def _names(self) -> list[str]:
        """All members, in order."""
        return sorted(self._archive.root.namelist())

    @cached_property
    def _folders(self) -> dict[str, list[Entry]]:
        folders: dict[str, list[Entry]] = {}
        for name in self._names:
            parent, _, own = name.rstrip("/").rpartition("/")
            if own and not own.startswith("."):
                folders.setdefault(parent, []).append(Entry(own, name.endswith("/")))
        return {parent: sorted(entries) for parent, entries in folders.items()}

    def entries(self, at: str) -> list[Entry]:
        return self._folders.get(at, [])

    def walk(self, at: str) -> Iterator[str]:
        """Yield the members in order of their whole names."""
        prefix = f"{at}/" if at else ""
        for number in range(bisect_left(self._names, prefix), len(self._names)):
            if not self._names[number].startswith(prefix):
                return
            name = self._names[number][len(prefix) :]
            parts = name.split("/")
            if parts[-1] and parts[0] != MACOS_FOLDER and not any(part.startswith(".") for part in parts):
                yield name

    def path(self, at: str) -> zipfile.Path:
        return zipfile.Path(self._archive.root, f"{at}/" if at else "")


class Listing:
    """A folder on disk or in a zip. The listings of its folders share what was looked up once."""

    def __init__(self, tree: FileTree, at: str = ""):
        self._tree, self._at = tree, at

    @cached_property
    def root(self) -> AnyPath:
        """The folder itself."""
        return self._tree.path(self._at)

    @property
    def name(self) -> str:
        """The folder as messages name it."""
        return str(self.root).rstrip("/")

    @cached_property
    def entries(self) -> list[Entry]:
        """The files and folders in it, but hidden ones."""
        return [entry for entry in self._tree.entries(self._at) if entry.name != MACOS_FOLDER]

    @property
    def folders(self) -> list[str]:
        """The names of the folders in it."""
        return [entry.name for entry in self.entries if entry.is_folder]

    @cached_property
    def files(self) -> list[str]:
        """The names of the files in it."""
        return [entry.name for entry in self.entries if not entry.is_folder]

    def walk(self) -> Iterator[str]:
        """Yield the names of all files in it, at any depth, seen from it. Hidden ones are left out."""
        return self._tree.walk(self._at)

    def below(self, name: str) -> "Listing":
        """Return the listing of a folder in it."""
        return Listing(self._tree, _join(self._at, name))

    def file(self, name: str) -> AnyPath:
        """Return the file of that name."""
        return self.root / name


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
