"""Aligned text files, plain or `.gz`: line i of one belongs to line i of the other."""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from io import BufferedReader
from itertools import zip_longest
from pathlib import Path

from foveal.core.errors import UserError
from foveal.data.core.fields import Found, as_texts
from foveal.data.core.rows import Aside, Row, checked
from foveal.data.files.lines import Line, Lines
from foveal.data.files.utf8 import open_file


def read_aligned(source: Path, target: Path, columns: Sequence[str]) -> Iterator[Row | Aside]:
    """Line i of both files, as the two fields `columns`.

    Errors: UserError for a `.gz` that is damaged, for files of unequal numbers of lines, and where no two
    lines can be used.
    """
    return checked(f"{source},{target}", _pairs(source, target, columns), as_texts)


def _pairs(source: Path, target: Path, columns: Sequence[str]) -> Iterator[Found]:
    sources = targets = 0
    for one, other in zip_longest(lines_of(source), lines_of(target)):
        sources += one is not None
        targets += other is not None
        if one and other:
            texts = (line.text.removesuffix("\n").removesuffix("\r") for line in (one, other))
            why = one.why or other.why
            yield f"line {one.number}", why or dict(zip(columns, texts, strict=True))
    if sources != targets:
        raise UserError(
            f"{source} has {sources} lines and {target} has {targets}; mend them so that line i of one "
            "belongs to line i of the other"
        )


def lines_of(path: Path) -> Iterator[Line]:
    """The lines of a file, unpacked if it is a `.gz`, each as text or with the reason why it is none."""
    with open_file(path) as file:
        if path.suffix.lower() != ".gz":
            yield from Lines(file.readline)
            return
        try:
            with BufferedReader(gzip.GzipFile(fileobj=file)) as unpacked:
                yield from Lines(unpacked.readline)
        except (EOFError, OSError, zlib.error) as error:
            raise UserError(f"{path}: damaged, not a whole .gz ({error}); get the file anew") from None
