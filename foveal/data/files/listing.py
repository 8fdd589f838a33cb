"""Listings of folders on disk and in zips. Each folder is listed once."""

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
"""The folder that macOS adds to a zip."""
WINDOWS_FILES = {"thumbs.db", "desktop.ini", "ehthumbs.db"}
"""Files that Windows adds to folders, in lower case. They count as hidden."""


class Entry(NamedTuple):
    """A file or folder in a folder. A link to a folder is a folder."""

    name: str
    is_folder: bool
    is_link: bool = False


class FileTree(ABC):
    """The files below a root. Each folder is listed once. Hidden files and folders are left out."""

    @abstractmethod
    def entries(self, folder: str) -> list[Entry]:
        """Return the files and folders in `folder`, a path below the root, in order of their names."""

    @abstractmethod
    def walk(self, folder: str) -> Iterator[str]:
        """Yield the paths of all files below `folder`, relative to `folder`."""

    @abstractmethod
    def path(self, folder: str) -> AnyPath:
        """Return the path of `folder`."""


class DiskTree(FileTree):
    """A folder on disk. Folders inside are listed when they are first needed."""

    def __init__(self, root: Path):
        self._root = root
        self._folders: dict[str, list[Entry]] = {}

    def entries(self, folder: str) -> list[Entry]:
        if folder not in self._folders:
            self._folders[folder] = self._scan(folder)
        return self._folders[folder]

    def _scan(self, folder: str) -> list[Entry]:
        try:
            with os.scandir(self._root / folder) as scanned:
                entries = [Entry(entry.name, entry.is_dir(), entry.is_symlink()) for entry in scanned]
        except OSError as error:
            raise UserError(f"{error.filename}: can't read: {error.strerror}") from None
        return sorted(entry for entry in entries if not _is_hidden(entry.name))

    def walk(self, folder: str) -> Iterator[str]:
        """Yield the folder's own files first, then the files of its folders. Links to folders are followed.

        Raises: UserError: a link leads to a folder around it or in the tree, or two links to the same folder.
        """
        return self._walk(folder, {})

    def _walk(self, folder: str, followed: dict[str, Path]) -> Iterator[str]:
        """`followed` maps the folders that links lead to, to the first link."""
        entries = self.entries(folder)
        yield from (entry.name for entry in entries if not entry.is_folder)
        for entry in entries:
            if entry.is_folder:
                inside = _join(folder, entry.name)
                if entry.is_link:
                    _follow(self._root / inside, self._root, followed)
                yield from (f"{entry.name}/{name}" for name in self._walk(inside, followed))

    def path(self, folder: str) -> Path:
        return self._root / folder


class ZipTree(FileTree):
    """The content of a zip, whose members are read once."""

    def __init__(self, archive: zipfile.Path):
        self._archive = archive

    @cached_property
    def _names(self) -> list[str]:
        """The names of all members, sorted."""
        return sorted(self._archive.root.namelist())

    @cached_property
    def _folders(self) -> dict[str, list[Entry]]:
        folders: dict[str, list[Entry]] = {}
        for name in self._names:
            parent, _, own_name = name.rstrip("/").rpartition("/")
            if own_name and not _is_hidden(own_name):
                folders.setdefault(parent, []).append(Entry(own_name, name.endswith("/")))
        return {parent: sorted(entries) for parent, entries in folders.items()}

    def entries(self, folder: str) -> list[Entry]:
        return self._folders.get(folder, [])

    def walk(self, folder: str) -> Iterator[str]:
        """Yield the members in order of their full names."""
        prefix = f"{folder}/" if folder else ""
        for index in range(bisect_left(self._names, prefix), len(self._names)):
            if not self._names[index].startswith(prefix):
                return
            name = self._names[index][len(prefix) :]
            parts = name.split("/")
            if parts[-1] and parts[0] != MACOS_FOLDER and not any(map(_is_hidden, parts)):
                yield name

    def path(self, folder: str) -> zipfile.Path:
        return zipfile.Path(self._archive.root, f"{folder}/" if folder else "")


class Listing:
    """A folder on disk or in a zip. Listings of the same tree share their entries."""

    def __init__(self, tree: FileTree, folder: str = ""):
        self._tree, self._folder = tree, folder

    @cached_property
    def root(self) -> AnyPath:
        """The path of the folder."""
        return self._tree.path(self._folder)

    @property
    def name(self) -> str:
        """The name of the folder in messages."""
        return str(self.root).rstrip("/")

    @cached_property
    def entries(self) -> list[Entry]:
        """The files and folders inside, except hidden ones."""
        return [entry for entry in self._tree.entries(self._folder) if entry.name != MACOS_FOLDER]

    @property
    def folders(self) -> list[str]:
        """The names of the folders inside."""
        return [entry.name for entry in self.entries if entry.is_folder]

    @cached_property
    def files(self) -> list[str]:
        """The names of the files inside."""
        return [entry.name for entry in self.entries if not entry.is_folder]

    def walk(self) -> Iterator[str]:
        """Yield the relative paths of all files at any depth, except hidden files."""
        return self._tree.walk(self._folder)

    def below(self, name: str) -> "Listing":
        """Return the listing of the folder `name` inside."""
        return Listing(self._tree, _join(self._folder, name))

    def file(self, name: str) -> AnyPath:
        """Return the path of the file `name`."""
        return self.root / name


def _follow(link: Path, root: Path, followed: dict[str, Path]) -> None:
    """Add the folder that `link` leads to.

    Raises: UserError: the folder is around the link or in the tree of `root`, or another link leads there.
    """
    target, top = os.path.realpath(link), os.path.realpath(root)
    around = Path(os.path.realpath(link.parent))
    if around.is_relative_to(target):
        raise UserError(f"{link}: a link to a folder around it ({target}), without end; remove the link")
    is_hidden = any(part.startswith(".") for part in Path(os.path.relpath(target, top)).parts)
    if Path(target).is_relative_to(top) and not is_hidden:
        raise UserError(f"{link}: a link to {target}, which is read already; remove the link")
    if target in followed:
        raise UserError(f"{link}: a link to {target}, as {followed[target]} is; remove one of them")
    followed[target] = link


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name.lower() in WINDOWS_FILES


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
