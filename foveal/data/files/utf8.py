"""UTF-8 text from files of any size, in blocks. The error for other files gives the position of the first bad
byte.

Text is read exactly as stored: CRLF stays CRLF. Only a byte order mark at the start is dropped.
"""

import codecs
import zipfile
from collections.abc import Iterator
from io import BufferedIOBase, BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, cast

from foveal.core.errors import UserError
from foveal.data.files.encodings import iconv_hint
from foveal.data.files.unpacked_size import check_member_size

AnyPath = Path | zipfile.Path
"""A file on disk or in a zip."""
BLOCK_BYTES = 1 << 20
"""Bytes read at a time, and the approximate length of a block of text."""


class NotTextError(UserError):
    """A file whose bytes are not UTF-8 text."""


def open_file(path: AnyPath) -> BufferedIOBase:
    """Open `path` for reading.

    Raises: UserError: the system denies access, or a member of a zip claims to be implausibly large.
    """
    if isinstance(path, zipfile.Path):
        check_member_size(path)
    try:
        return cast(BufferedIOBase, path.open("rb"))
    except OSError as error:
        raise UserError(f"{path}: can't read: {error.strerror}") from None


def open_lines(path: AnyPath) -> BufferedIOBase:
    """Open `path` for reading lines of UTF-8. UTF-16 is converted, and so are line ends of old Macs (`\\r`).

    Raises: UserError: the system denies access.
    """
    file = open_file(path)
    try:
        start = cast(BufferedReader, file).peek(len(codecs.BOM_UTF16_LE))  # a pipe can be read only once
    except BaseException:
        file.close()
        raise
    encoding = utf16_encoding(start)
    text = start.decode(encoding, "ignore").encode("utf-8", "ignore") if encoding else start
    has_mac_ends = b"\r" in text[:-1] and b"\n" not in text
    if not encoding and not has_mac_ends:
        return file
    return BufferedReader(_ConvertedFile(path, file, encoding or "utf-8", has_mac_ends))


def utf16_encoding(data: bytes) -> str:
    """Return which UTF-16 the first bytes of a file are: with a byte order mark, or with many NULs, all at
    even or all at odd positions. Empty for other bytes."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    head = data[:4096]
    even, odd = head[::2].count(0), head[1::2].count(0)
    if min(even, odd) > 0 or max(even, odd) <= len(head) / 4:
        return ""
    return "utf-16-le" if odd else "utf-16-be"


class _ConvertedFile(RawIOBase):
    """A file of UTF-16, or with line ends of old Macs, read as UTF-8."""

    def __init__(self, path: AnyPath, file: BufferedIOBase, encoding: str, has_mac_ends: bool):
        self._path, self._file, self._has_mac_ends = path, file, has_mac_ends
        self._decoder = None if encoding == "utf-8" else codecs.getincrementaldecoder(encoding)()
        self._converted = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = b"-"
        while block and not self._converted:
            block = self._file.read(BLOCK_BYTES)
            self._converted = self._convert(block)
        count = min(len(buffer), len(self._converted))
        buffer[:count], self._converted = self._converted[:count], self._converted[count:]
        return count

    def _convert(self, block: bytes) -> bytes:
        if self._decoder is not None:
            try:
                block = self._decoder.decode(block, final=not block).encode()
            except UnicodeDecodeError as error:
                raise NotTextError(
                    f"{self._path}: damaged UTF-16: {error.reason}; get the file again"
                ) from None
        return block.replace(b"\r", b"\n") if self._has_mac_ends else block

    def close(self) -> None:
        self._file.close()
        super().close()


def read_text(path: Path, start: int = 0, stop: int | None = None) -> Iterator[str]:
    """Yield the text of bytes `start` to `stop` in blocks of about BLOCK_BYTES that end at a line end.

    A line longer than a block is cut between any two characters. `start` and `stop` must not lie inside a
    character.

    Raises: NotTextError: a byte is not UTF-8 text. The message gives its position.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_file(path) as file:
        if start == 0 and file.read(3) == codecs.BOM_UTF8:
            start = 3
        file.seek(start)
        position, text = start, ""
        while True:
            block = file.read(BLOCK_BYTES if stop is None else max(0, min(BLOCK_BYTES, stop - position)))
            if b"\0" in block:
                raise not_text_error(
                    path, block, position + block.index(0), "NUL byte", at_start=position == 0
                )
            position += len(block)
            try:
                text += decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                first = position - len(error.object)
                raise not_text_error(
                    path, error.object, first + error.start, error.reason, at_start=first == 0
                ) from None
            if not block:
                break
            cut = text.rfind("\n") + 1 or len(text)
            yield text[:cut]
            text = text[cut:]
    if text:
        yield text


def not_text_error(path: Path, data: bytes, offset: int, reason: str, *, at_start: bool) -> NotTextError:
    """Return the error for a block `data` of the file at `path`, not UTF-8 at byte `offset` of the file."""
    if at_start and (utf16 := utf16_encoding(data)):
        return NotTextError(
            f"{path}: UTF-16; convert with: iconv -f {utf16.upper().replace('16-', '16')} -t UTF-8 OLD > NEW"
        )
    if reason == "NUL byte":
        return NotTextError(f"{path}: binary, not text (NUL at byte {offset}); give UTF-8 text")
    if reason == "unexpected end of data":
        return NotTextError(
            f"{path}: cut off in the middle of a character at byte {offset}; get the whole file"
        )
    return NotTextError(f"{path}: not UTF-8 at byte {offset}; {iconv_hint(data)}")
