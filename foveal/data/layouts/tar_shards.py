"""Shards in the format of WebDataset: `shard-000000.tar` with `KEY.jpg` and what belongs to it, such as
`KEY.cls`, `KEY.txt` and `KEY.json`."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_row
from foveal.data.audio.audio_source import AUDIO_SUFFIXES
from foveal.data.core.fields import Fields
from foveal.data.core.hash_split import SPLITS, SplitName
from foveal.data.files.data_part import DataPart
from foveal.data.files.listing import DiskTree
from foveal.data.files.split_names import list_names, split_of_name
from foveal.data.files.text_files import read_text_file
from foveal.data.files.unpack import TAR_SUFFIX, first_members, unpack_tars
from foveal.data.images.image_decoding import IMAGE_SUFFIXES
from foveal.data.layouts.layout import Layout, LayoutRow, LayoutSplit
from foveal.data.layouts.table_of_files import TARGETS

FILE_SUFFIXES = (TAR_SUFFIX,)
"""A single shard is read, too."""
MEDIA_SUFFIXES = (*IMAGE_SUFFIXES, *AUDIO_SUFFIXES)
TEXT_COLUMNS = {".cls": "label", ".txt": "text"}
"""The columns that are files of their own."""
JSON_SUFFIX = ".json"
"""The suffix of a file whose values are columns."""
MAX_LOOKED_AT = 100
"""First members of the first shard that are looked at."""


def find(part: DataPart) -> Layout | None:
    names = _shard_names(part)
    folder = part.path.parent if part.is_file else part.path
    samples = group_samples(first_members(folder / names[0], MAX_LOOKED_AT)) if names else iter(())
    beside = next((each for _, suffixes in samples if _media(suffixes) and (each := _beside(suffixes))), [])
    if not beside:
        return None
    by_split: dict[SplitName | None, list[str]] = {}
    for name in names:
        by_split.setdefault(split_of_name(name), []).append(name)
    if "train" not in by_split:
        by_split = {"train": names}
    unpacked = unpack_tars(folder, names)
    columns = _columns(unpacked, names, beside)
    splits = {
        split: LayoutSplit(
            [folder / name for name in by_split[split]],
            unpacked,
            columns,
            partial(_rows, folder, unpacked, by_split[split], beside, columns),
        )
        for split in SPLITS
        if split in by_split
    }
    unused = f" ({list_names(by_split[None])} of no split not read)" if None in by_split else ""
    shown = f"{names[0]} and {len(names) - 1:,} more have" if len(names) > 1 else f"{names[0]} has"
    reason = f"{shown} files with {' and '.join(beside)} beside each, as in WebDataset{unused}"
    return Layout(reason, splits, unpacked)


def group_samples(names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each key, and the suffixes of its files. A key ends at the first dot of a file's name."""
    for key, pairs in groupby(sorted(map(_split_name, names)), key=lambda pair: pair[0]):
        yield key, [suffix for _, suffix in pairs]


def _shard_names(part: DataPart) -> list[str]:
    """Return the sorted names of the shards, or none if most of the first files are no tars."""
    if part.is_file:
        return [part.path.name]
    tars = [name for name in part.first_files if name.lower().endswith(TAR_SUFFIX)]
    if 2 * len(tars) <= len(part.first_files):
        return []
    return sorted(name for name in part.listing.walk() if name.lower().endswith(TAR_SUFFIX))


def _split_name(name: str) -> tuple[str, str]:
    folder, slash, file = name.rpartition("/")
    key, dot, suffix = file.partition(".")
    return f"{folder}{slash}{key}", f"{dot}{suffix}"


def _media(suffixes: Sequence[str]) -> list[str]:
    return [suffix for suffix in suffixes if suffix.lower() in MEDIA_SUFFIXES]


def _beside(suffixes: Sequence[str]) -> list[str]:
    """Return the suffixes of the files with columns."""
    return [suffix for suffix in suffixes if suffix in TEXT_COLUMNS or suffix == JSON_SUFFIX]


def _columns(unpacked: Path, names: Sequence[str], beside: Sequence[str]) -> list[str]:
    """Return the names of the columns, as the first sample that has all of its files has them."""
    for name in names:
        for key, suffixes in _samples(unpacked / name):
            values = _values(unpacked / name, key, beside) if {*beside} <= {*suffixes} else ""
            if not isinstance(values, str):
                return [*values]
    return [TEXT_COLUMNS[suffix] for suffix in beside if suffix in TEXT_COLUMNS]


def _samples(folder: Path) -> Iterator[tuple[str, list[str]]]:
    return group_samples([*DiskTree(folder).walk("")])


def _rows(
    folder: Path, unpacked: Path, names: Sequence[str], beside: Sequence[str], columns: Sequence[str]
) -> Iterator[LayoutRow]:
    """Yield the row of each key.

    Raises: UserError: two shards have the same key.
    """
    first_shard: dict[str, str] = {}
    for name in names:
        for key, suffixes in _samples(unpacked / name):
            if (first := first_shard.setdefault(key, name)) != name:
                raise UserError(
                    f"{folder / name}, {key}: {folder / first} has this key, too; remove one of the shards, "
                    "or rename the files in it"
                )
            media = _media(suffixes)
            origin = f"{folder / name}, {key}{media[0] if media else suffixes[0]}"
            if reason := _missing(key, media, suffixes, beside):
                yield LayoutRow(origin, reason)
                continue
            values = _values(unpacked / name, key, beside)
            if isinstance(values, str):
                yield LayoutRow(origin, values)
            else:
                yield LayoutRow(origin, [f"{name}/{key}{media[0]}", *map(values.get, columns)])


def _missing(key: str, media: Sequence[str], suffixes: Sequence[str], beside: Sequence[str]) -> str:
    """Say what is missing of a sample. Empty if nothing is."""
    if not media:
        return f"no picture or recording with the key {key}; add it, or remove what belongs to it"
    if len(media) > 1:
        return f"{' and '.join(media)} have the same key; keep one of them"
    for suffix in beside:
        if suffix not in suffixes:
            return f"no {key}{suffix} with it; add it, or leave the file out"
    return ""


def _values(folder: Path, key: str, beside: Sequence[str]) -> Fields | str:
    """Return the columns of a sample, or the reason why a file beside it can't be used."""
    values: Fields = {}
    for suffix in beside:
        text = read_text_file(folder / f"{key}{suffix}")
        if text.reason:
            return f"{key}{suffix}: {text.reason}"
        if suffix in TEXT_COLUMNS:
            values[TEXT_COLUMNS[suffix]] = text.text
            continue
        try:
            content = parse_row(text.text)
        except ValueError as error:
            return f"{key}{suffix}: not JSON: {error}; fix it, or leave the file out"
        if not isinstance(content, dict):
            return f"{key}{suffix}: no object ({{...}}); fix it, or leave the file out"
        for name, value in content.items():
            values.setdefault(_column(name), value)
    return values


def _column(name: str) -> str:
    """Return the column for a key of JSON: `text` and `label` have several names."""
    return next((column for column, names in TARGETS.items() if name.lower() in names), name)
