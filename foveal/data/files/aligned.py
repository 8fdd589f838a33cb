"""Aligned text files, plain or `.gz`: line i of the first file corresponds to line i of the second."""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from io import BufferedReader
from itertools import permutations, zip_longest
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.data.core.fields import Record, as_texts
from foveal.data.core.rows import Row, SkippedRow, validate_rows
from foveal.data.files.lines import Line, LineReader
from foveal.data.files.unpacked_size import check_unpacked_size
from foveal.data.files.unread_formats import binary_kind
from foveal.data.files.utf8 import open_file, open_lines

NAME_WORD = re.compile(r"[^\W_]+")


def read_aligned(
    source: Path, target: Path, columns: Sequence[str], encoding: str = ""
) -> Iterator[Row | SkippedRow]:
    """Read line i of both files as a row with the two fields `columns`.

    Raises: UserError: a `.gz` is damaged, the files differ in their numbers of lines, or no two lines can be
        used.
    """
    return validate_rows(f"{source},{target}", _pairs(source, target, columns, encoding), as_texts)


def _pairs(source: Path, target: Path, columns: Sequence[str], encoding: str) -> Iterator[Record]:
    source_count = target_count = 0
    lines_of_both = zip_longest(read_lines(source, encoding), read_lines(target, encoding))
    for source_line, target_line in lines_of_both:
        source_count += source_line is not None
        target_count += target_line is not None
        if source_line and target_line:
            lines = (source_line, target_line)
            texts = (line.text.removesuffix("\n").removesuffix("\r") for line in lines)
            reason = source_line.reason or target_line.reason
            yield f"line {source_line.number}", reason or dict(zip(columns, texts, strict=True))
    if source_count != target_count:
        raise UserError(
            f"{source} has {source_count} lines and {target} has {target_count}; fix them so that line i of "
            "the first belongs to line i of the second"
        )


def check_same_order(train: tuple[Path, Path] | None, other: tuple[Path, Path] | None) -> None:
    """Check that the names of two aligned files don't have the languages of `train` the other way round.

    Raises: UserError: they do, as `val.en,val.de` after `train.de,train.en`.
    """
    if train is None or other is None:
        return
    source, target = (words - others for words, others in permutations([*map(_name_words, train)]))
    first, second = (words - others for words, others in permutations([*map(_name_words, other)]))
    if source and target and (first, second) == (target, source):
        raise UserError(
            f"{other[0]},{other[1]}: the other order than in training ({train[0].name},{train[1].name}), so "
            f"sources and targets would be swapped: write {other[1]},{other[0]}"
        )


def _name_words(path: Path) -> Counter[str]:
    return Counter(NAME_WORD.findall(path.name.lower()))


def read_lines(path: Path, encoding: str = "") -> Iterator[Line]:
    """Yield the lines of a file, decompressed if it is a `.gz`. A line that is not text has a reason instead.

    Raises: UserError: the file can't be read, is of a kind that is no text, or a `.gz` is damaged.
    """
    if path.suffix.lower() != ".gz":
        if kind := binary_kind(path):
            raise UserError(
                f"{path}: {kind}, and text is read here; give a file of text, or a table of texts"
            )
        with open_lines(path) as file:
            yield from LineReader(file.readline, encoding=encoding)
        return
    with open_file(path) as file:
        try:
            with BufferedReader(gzip.GzipFile(fileobj=file)) as unpacked:
                yield from LineReader(partial(_bounded_line, path, unpacked), encoding=encoding)
        except (EOFError, OSError, zlib.error) as error:
            raise UserError(f"{path}: damaged, not a whole .gz ({error}); get the file again") from None


def _bounded_line(path: Path, unpacked: "BufferedReader[Any]", max_bytes: int) -> bytes:
    """Return at most `max_bytes` of the next line of a `.gz`.

    Raises: UserError: the file unpacks to implausibly many bytes.
    """
    line = unpacked.readline(max_bytes)
    check_unpacked_size(path, unpacked.tell(), " or more")
    return line
