"""UTF-8 text from files of any size, in blocks. The error for other files gives the position of the first bad
byte.

Text is read exactly as stored: CRLF stays CRLF. Only a byte order mark at the start is dropped.
"""

import codecs
import zipfile
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import cast

from foveal.core.errors import UserError

AnyPath = Path | zipfile.Path
"""A file on disk or in a zip."""
BLOCK_BYTES = 1 << 20
"""Bytes read at a time, and the approximate length of a block of text."""


class NotTextError(UserError):
    """A file whose bytes are not UTF-8 text."""


def open_file(path: AnyPath) -> BufferedIOBase:
    """Open `path` for reading.

    Raises: UserError: the system denies access.
    """
    try:
        return cast(BufferedIOBase, path.open("rb"))
    except OSError as error:
        raise UserError(f"{path}: can't read: {error.strerror}") from None


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
