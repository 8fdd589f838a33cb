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
    """Open `path` for reading lines of UTF-8. UTF-16 with a byte order mark is converted.

    Raises: UserError: the system denies access.
    """
    file = open_file(path)
    try:
        start = cast(BufferedReader, file).peek(len(codecs.BOM_UTF16_LE))  # a pipe can be read only once
    except BaseException:
        file.close()
        raise
    is_utf16 = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return BufferedReader(_Utf16File(path, file)) if is_utf16 else file


class _Utf16File(RawIOBase):
    """A file of UTF-16, read as UTF-8."""

    def __init__(self, path: AnyPath, file: BufferedIOBase):
        self._path, self._file = path, file
        self._decoder = codecs.getincrementaldecoder("utf-16")()
        self._decoded = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = b"-"
        while block and not self._decoded:
            block = self._file.read(BLOCK_BYTES)
            try:
                self._decoded = self._decoder.decode(block, final=not block).encode()
            except UnicodeDecodeError as error:
                raise NotTextError(
                    f"{self._path}: damaged UTF-16: {error.reason}; get the file again"
                ) from None
        count = min(len(buffer), len(self._decoded))
        buffer[:count], self._decoded = self._decoded[:count], self._decoded[count:]
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def encoding_hint(data: bytes) -> str:
    """Return how to read bytes that are not UTF-8: the encoding that they seem to have, for a message."""
    high = sum(byte >= 0x80 for byte in data)
    letters = high + sum(chr(byte).isalpha() for byte in data if byte < 0x80)
    if 3 * high <= letters:
        return "it seems Latin-1 (Windows-1252): data.encoding=cp1252"
    names = "cp1251 (Cyrillic), gb18030 (Chinese) or shift_jis (Japanese)"
    return f"name its encoding, such as data.encoding={names}"


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
    if at_start and _is_utf16(data):
        return NotTextError(f"{path}: UTF-16; convert with: iconv -f UTF-16 -t UTF-8 OLD > NEW")
    if reason == "NUL byte":
        return NotTextError(f"{path}: binary, not text (NUL at byte {offset}); give UTF-8 text")
    if reason == "unexpected end of data":
        return NotTextError(
            f"{path}: cut off in the middle of a character at byte {offset}; get the whole file"
        )
    return NotTextError(
        f"{path}: not UTF-8 at byte {offset}; if it is Latin-1, convert with: "
        "iconv -f LATIN1 -t UTF-8 OLD > NEW"
    )


def _is_utf16(data: bytes) -> bool:
    """Return whether there is a byte order mark, or whether many bytes are NUL, all at even or all at odd
    positions."""
    head = data[:4096]
    low, high = head[::2].count(0), head[1::2].count(0)
    return head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or (
        min(low, high) == 0 and max(low, high) > len(head) / 4
    )
