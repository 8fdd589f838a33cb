"""Small text files, each read as a whole: a text to label, or the text beside a picture."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from foveal.data.core.rows import NOT_UTF8
from foveal.data.files.encodings import encoding_hint
from foveal.data.files.file_bytes import read_file_bytes
from foveal.data.files.sidecars import without_sidecars
from foveal.data.files.utf8 import AnyPath, utf16_encoding

PLAIN_SUFFIXES = ("", ".txt", ".text")
"""Suffixes of texts. Source code and markup have others."""


class FileText(NamedTuple):
    """The text of a file without white space around it, or the reason why it can't be used."""

    text: str
    reason: str = ""


def has_text_suffix(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in PLAIN_SUFFIXES


def one_file_per_text(names: Sequence[str]) -> list[str]:
    """Return the names without files that have the name of a text beside them, but for the suffix."""
    texts = {os.path.splitext(name)[0]: name for name in names if has_text_suffix(name)}
    return without_sidecars([name for name in names if name == texts.get(os.path.splitext(name)[0], name)])


def read_text_file(file: AnyPath, encoding: str = "") -> FileText:
    """Read a file of UTF-8, of UTF-16, or of `encoding`."""
    content = read_file_bytes(file)
    if isinstance(content, str):
        return FileText("", content)
    first = utf16_encoding(content) or "utf-8-sig"
    try:
        text = content.decode(first)
    except UnicodeDecodeError as error:
        if not encoding:
            return FileText("", f"{NOT_UTF8} at byte {error.start}; {encoding_hint(content)}")
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError as other:
            return FileText("", f"neither UTF-8 nor {encoding} at byte {other.start}; fix it")
    if "\0" in text:
        return FileText("", "binary, with a NUL in it; give text")
    return FileText(text.strip(), "" if text.strip() else "empty; write a text, or leave the file out")
