"""What DATA looks like, seen once: the only facts by which a task recognizes its data."""

from dataclasses import dataclass
from pathlib import Path

from foveal.core.errors import UserError
from foveal.data.audio.speech import is_audio_folder
from foveal.data.core.rows import Row
from foveal.data.files.folders import METADATA_FILES, open_folder
from foveal.data.files.tables import TABLE_SUFFIXES, column_names
from foveal.data.files.utf8 import AnyPath
from foveal.data.images.image_arrays import image_column
from foveal.data.images.image_files import is_image_data, is_zip, metadata_table
from foveal.data.prepare_examples import split_paths
from foveal.data.series.series_files import is_series, read_series
from foveal.data.video.clip_files import clip_columns, is_clip_data

CONLL_SUFFIXES = (".conllu", ".conll")


@dataclass(frozen=True)
class DataTraits:
    """The kind of DATA, and what stands beside its sources.

    Kinds: clips, images, audio, conll, series, table, text, aligned (two paths) and missing (no such path).
    """

    kind: str
    columns: frozenset[str] = frozenset()
    """The columns of the table, or the fields of the first series; empty where nothing can be read."""
    has_table: bool = False
    is_damaged: bool = False
    """Whether the table can't be read; its reader says why."""


def observe(data: str) -> DataTraits:
    """Look at DATA, a path, once."""
    path = Path(data)
    if not path.exists():
        return DataTraits("aligned" if "," in data else "missing")
    train = split_paths(data)["train"]
    if is_clip_data(train):
        return DataTraits("clips", frozenset(clip_columns(train)))
    if is_image_data(data):
        return _images(Path(train))
    if is_audio_folder(train):
        return _table("audio", metadata_table(Path(train)))
    if any((path / table).is_file() for table in METADATA_FILES):
        return DataTraits("audio", is_damaged=True)
    return _file(Path(train))


def _images(path: Path) -> DataTraits:
    in_table = image_column(path) is not None
    if path.is_file() and not is_zip(path) and not in_table:
        return DataTraits("images")
    return _table("images", path if in_table else metadata_table(open_folder(str(path))))


def _file(path: Path) -> DataTraits:
    suffix = path.suffix.lower()
    if suffix in CONLL_SUFFIXES:
        return DataTraits("conll")
    if path.is_file() and is_series(path):
        return _series(path)
    if path.is_file() and suffix in TABLE_SUFFIXES:
        return _table("table", path)
    return DataTraits("text")


def _table(kind: str, table: AnyPath | None) -> DataTraits:
    if table is None:
        return DataTraits(kind)
    try:
        return DataTraits(kind, frozenset(column_names(table)), has_table=True)
    except UserError:
        return DataTraits(kind, has_table=True, is_damaged=True)


def _series(path: Path) -> DataTraits:
    try:
        first = next(row for row in read_series(path) if isinstance(row, Row))
    except UserError:
        return DataTraits("series", is_damaged=True)
    return DataTraits("series", frozenset(first.fields))
