"""Documents from a user's path: a text file, a folder of text files, or a table with a text column."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from foveal.core.errors import UserError
from foveal.data.files.tables import TABLE_SUFFIXES, read_table
from foveal.data.files.utf8 import NotTextError, read_text


@dataclass(frozen=True)
class Document:
    """A text that belongs together; `pieces` are read when asked for, once, and join to the whole."""

    name: str
    pieces: Iterable[str]


@dataclass(frozen=True)
class TextFile:
    """Any UTF-8 text file: one document."""

    path: Path

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.path,)

    def documents(self) -> Iterator[Document]:
        yield Document(str(self.path), read_text(self.path))


@dataclass(frozen=True)
class TextTable:
    """A table with a column of text: each row is a document."""

    path: Path
    column: str

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.path,)

    def documents(self) -> Iterator[Document]:
        for place, text in read_table(self.path, self.column):
            yield Document(f"{self.path}, {place}", (text,))


@dataclass(frozen=True)
class FileContent:
    """What a folder's file holds: the sha256 of its bytes, and its length in characters."""

    path: Path
    sha256: str
    characters: int


@dataclass(frozen=True)
class TextFolder:
    """Every text file below a folder, in the order of their paths; hidden and empty ones are left out.

    Files that are not UTF-8 text are `skipped`. Errors: a folder with no text in it.
    """

    path: Path

    @cached_property
    def files(self) -> tuple[Path, ...]:
        found = []
        for folder, inside, names in os.walk(self.path, onerror=_raise_unreadable):
            inside[:] = [name for name in inside if not name.startswith(".")]
            found += [Path(folder, name) for name in names if not name.startswith(".")]
        return tuple(sorted(path for path in found if path.is_file()))

    @cached_property
    def _scan(self) -> tuple[tuple[FileContent, ...], tuple[str, ...]]:
        texts, skipped = [], []
        for path in self.files:
            content, characters = hashlib.sha256(), 0
            try:
                for piece in read_text(path):
                    content.update(piece.encode())
                    characters += len(piece)
            except NotTextError as error:
                skipped.append(str(error))
                continue
            if characters:
                texts.append(FileContent(path, content.hexdigest(), characters))
        if not texts:
            why = f"; {len(skipped)} file(s) in it are not text, the first: {skipped[0]}" if skipped else ""
            raise UserError(f"{self.path}: a folder with no text in it{why}")
        return tuple(texts), tuple(skipped)

    @property
    def texts(self) -> tuple[FileContent, ...]:
        return self._scan[0]

    @property
    def skipped(self) -> tuple[str, ...]:
        """Why each file was left out that is not text."""
        return self._scan[1]

    def documents(self) -> Iterator[Document]:
        for text in self.texts:
            yield Document(str(text.path), read_text(text.path))


TextSource = TextFile | TextTable | TextFolder


def open_text_source(path: Path, column: str) -> TextSource:
    """The documents at `path`. Errors: a path that is missing, empty or no file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file or folder") from None
    except OSError as error:
        raise UserError(f"{path}: can't read: {error.strerror}") from None
    if stat.S_ISDIR(status.st_mode):
        return TextFolder(path)
    if not stat.S_ISREG(status.st_mode):
        raise UserError(f"{path}: neither a file nor a folder; write the text to a file first")
    if status.st_size == 0:
        raise UserError(f"{path}: empty; give a file with text in it")
    return TextTable(path, column) if path.suffix.lower() in TABLE_SUFFIXES else TextFile(path)


def _raise_unreadable(error: OSError) -> None:
    raise UserError(f"{error.filename}: can't read: {error.strerror}")
