"""LJSpeech: `metadata.csv` without header, of names, texts and spoken texts between bars, and `wavs/`."""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from foveal.data.files.aligned import read_lines
from foveal.data.files.data_part import METADATA_FILES, DataPart
from foveal.data.layouts.layout import Layout, LayoutRow, LayoutSplit, has_file

FOLDER, SUFFIX, SEPARATOR = "wavs", ".wav", "|"
MAX_LOOKED_AT = 20
"""First rows that are looked at."""


def find(part: DataPart) -> Layout | None:
    table, folder = part.path / METADATA_FILES[0], part.path / FOLDER
    if table.name not in part.listing.files or FOLDER not in part.listing.folders:
        return None
    first = [row.values for row in islice(_rows(table, part.encoding), MAX_LOOKED_AT)]
    if not any(has_file(folder, str(values[0])) for values in first if not isinstance(values, str)):
        return None
    reason = f"{table.name} names the recordings in {FOLDER} as that of LJSpeech"
    read = partial(_rows, table, part.encoding)
    return Layout(reason, {"train": LayoutSplit([table], folder, ["text"], read)})


def _rows(table: Path, encoding: str) -> Iterator[LayoutRow]:
    """Yield the file and the last text of each row: the normalized one, if there are two."""
    for line in read_lines(table, encoding):
        name, *texts = line.text.rstrip("\r\n").split(SEPARATOR)
        origin = f"{table}, line {line.number}"
        if texts:
            yield LayoutRow(origin, [f"{name}{SUFFIX}", texts[-1]])
        elif line.reason or name.strip():
            yield LayoutRow(origin, line.reason or f"no text after a {SEPARATOR}; fix the row")
