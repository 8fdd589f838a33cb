"""Documents from a text file, a folder of text files, or a table with a text column."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from foveal.core.errors import UserError
from foveal.data.files.data_part import DataPart
from foveal.data.files.listing import Listing
from foveal.data.files.tables import read_table
from foveal.data.files.utf8 import NotTextError, read_text


@dataclass(frozen=True)
class Document:
    """A text that stays together. `pieces` are its blocks in order, which can be read once."""

    name: str
    pieces: Iterable[str]


@dataclass(frozen=True)
class TextFile:
    """A UTF-8 text file, which is one document."""

    path: Path

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.path,)

    def documents(self) -> Iterator[Document]:
        yield Document(str(self.path), read_text(self.path))


@dataclass(frozen=True)
class TextTable:
    """A table with a column of text, in one file or several. Each row is a document."""

    part: DataPart
    column: str

    @property
    def path(self) -> Path:
        return self.part.path

    @property
    def files(self) -> tuple[Path, ...]:
        return self.part.files

    def documents(self) -> Iterator[Document]:
        for file in self.files:
            for location, text in read_table(file, self.column, self.part.encoding):
                yield Document(f"{file}, {location}", (text,))


@dataclass(frozen=True)
class FileContent:
    """A text file of a folder: the sha256 of its bytes, and its number of characters."""

    path: Path
    sha256: str
    characters: int


@dataclass(frozen=True)
class TextFolder:
    """All text files below a folder, in the order of their paths, except hidden and empty files.

    `skipped` has a reason for each file that is not UTF-8 text.
    """

    path: Path
    listing: Listing

    @cached_property
    def files(self) -> tuple[Path, ...]:
        paths = (self.path / name for name in self.listing.walk())
        return tuple(sorted(path for path in paths if path.is_file()))

    @cached_property
    def _scan(self) -> tuple[tuple[FileContent, ...], tuple[str, ...]]:
        """The text files, and the reasons for skipped files.

        Raises: UserError: no file has text.
        """
        texts, skipped = [], []
        for path in self.files:
            digest, characters = hashlib.sha256(), 0
            try:
                for piece in read_text(path):
                    digest.update(piece.encode())
                    characters += len(piece)
            except NotTextError as error:
                skipped.append(str(error))
                continue
            if characters:
                texts.append(FileContent(path, digest.hexdigest(), characters))
        if not texts:
            reason = (
                f"; {len(skipped)} file(s) in it are not text, the first: {skipped[0]}" if skipped else ""
            )
            raise UserError(f"{self.path}: a folder with no text in it{reason}")
        return tuple(texts), tuple(skipped)

    @property
    def texts(self) -> tuple[FileContent, ...]:
        return self._scan[0]

    @property
    def skipped(self) -> tuple[str, ...]:
        """The reason for each file that is not text."""
        return self._scan[1]

    def documents(self) -> Iterator[Document]:
        for text in self.texts:
            yield Document(str(text.path), read_text(text.path))


CorpusSource = TextFile | TextTable | TextFolder


def open_text_source(part: DataPart, column: str) -> CorpusSource:
    """Open the documents of a file or folder.

    Raises: UserError: the path is missing, empty, or neither a file nor a folder.
    """
    path, status = part.path, part.status
    if status is None:
        raise UserError(part.missing)
    if part.is_disk_folder:
        return TextFolder(path, part.listing)
    if not part.is_file:
        raise UserError(f"{path}: neither a file nor a folder; write the text to a file first")
    if status.st_size == 0:
        raise UserError(f"{path}: empty; give a file with text in it")
    return TextTable(part, column) if part.is_table else TextFile(path)
