"""Aligned text files, plain or `.gz`: line i of one belongs to line i of the other."""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from io import BufferedReader
from itertools import zip_longest
from pathlib import Path

from foveal.core.errors import UserError
from foveal.data.core.fields import Record, as_texts
from foveal.data.core.rows import Row, SkippedRow, validate_rows
from foveal.data.files.lines import Line, LineReader
from foveal.data.files.utf8 import open_file


def read_aligned(source: Path, target: Path, columns: Sequence[str]) -> Iterator[Row | SkippedRow]:
    """Line i of both files, as the two fields `columns`.

    Errors: UserError for a `.gz` that is damaged, for files of unequal numbers of lines, and where no two
    lines can be used.
    """
    return validate_rows(f"{source},{target}", _pairs(source, target, columns), as_texts)


def _pairs(source: Path, target: Path, columns: Sequence[str]) -> Iterator[Record]:
    sources = targets = 0
    for one, other in zip_longest(read_lines(source), read_lines(target)):
        sources += one is not None
        targets += other is not None
        if one and other:
            texts = (line.text.removesuffix("\n").removesuffix("\r") for line in (one, other))
            why = one.reason or other.reason
            yield f"line {one.number}", why or dict(zip(columns, texts, strict=True))
    if sources != targets:
        raise UserError(
            f"{source} has {sources} lines and {target} has {targets}; mend them so that line i of one "
            "belongs to line i of the other"
        )


def read_lines(path: Path) -> Iterator[Line]:
    """The lines of a file, unpacked if it is a `.gz`, each as text or with the reason why it is none."""
    with open_file(path) as file:
        if path.suffix.lower() != ".gz":
            yield from LineReader(file.readline)
            return
        try:
            with BufferedReader(gzip.GzipFile(fileobj=file)) as unpacked:
                yield from LineReader(unpacked.readline)
        except (EOFError, OSError, zlib.error) as error:
            raise UserError(f"{path}: damaged, not a whole .gz ({error}); get the file anew") from None
