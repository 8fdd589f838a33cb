"""LJSpeech: `metadata.csv` without header, of names, texts and spoken texts between bars, and `wavs/`."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from foveal.data.files.data_part import METADATA_FILES, DataPart
from foveal.data.layouts.layout import Layout, LayoutSplit

FOLDER, SUFFIX, SEPARATOR = "wavs", ".wav", "|"
MAX_LOOKED_AT = 20
"""First rows that are looked at."""


def find(part: DataPart) -> Layout | None:
    table, folder = part.path / METADATA_FILES[0], part.path / FOLDER
    if table.name not in part.listing.files or FOLDER not in part.listing.folders:
        return None
    if not any((folder / name).is_file() for name, _ in islice(_rows(table), MAX_LOOKED_AT)):
        return None
    reason = f"{table.name} names the recordings in {FOLDER} as that of LJSpeech"
    return Layout(reason, {"train": LayoutSplit([table], folder, ["text"], lambda: _rows(table))})


def _rows(table: Path) -> Iterator[tuple[str, str]]:
    """Yield the file and the last text of each row: the normalized one, if there are two."""
    with table.open(encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            name, *texts = line.rstrip("\n").split(SEPARATOR)
            if texts:
                yield f"{name}{SUFFIX}", texts[-1]
