"""Clips in videos, animations, folders of frames, folders and zips of these, and arrays."""

import io
import os
import re
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

from foveal.config.data import DataConfig
from foveal.core.errors import UserError
from foveal.data.audio.audio_source import AUDIO_SUFFIXES
from foveal.data.core.fields import Fields, Record, as_texts
from foveal.data.core.rows import Row, SkippedRow, validate_rows
from foveal.data.files.data_part import DataPart
from foveal.data.files.file_bytes import read_file_bytes
from foveal.data.files.folders import (
    FILE_NAME_COLUMN,
    check_class_names,
    is_inside,
    no_table_error,
    other_spellings,
)
from foveal.data.files.listing import Listing
from foveal.data.files.tables import read_records
from foveal.data.files.utf8 import AnyPath
from foveal.data.images.image_decoding import ANIMATED_FORMATS, IMAGE_SUFFIXES
from foveal.data.images.image_files import is_image_name
from foveal.data.pairs.labels import LABELS_COLUMN
from foveal.data.pairs.target import Target
from foveal.data.video.clip_arrays import ClipArray, has_clip_arrays, read_clip_arrays
from foveal.data.video.video_decoding import is_video

ClipFrames = list[AnyPath] | AnyPath | ClipArray
"""The frames of a clip: image files in order, the file of a video or an animation, or an array."""


def labeled_clips(part: DataPart, target: Target[Any], config: DataConfig) -> Iterator[Row | SkippedRow]:
    """Read `frames`, `name` and target of each clip.

    Raises: UserError: no clip can be used.
    """
    column = target.column(config)

    def check(fields: Fields) -> Fields | str:
        value = fields.pop("label")
        if target.each_place and value == []:  # a clip without frames: skipped later, with that reason
            return fields | {target.field: value}
        parsed = target.parse(column, value)
        return parsed if isinstance(parsed, str) else fields | parsed

    if has_clip_arrays(part):
        yield from _with_names(validate_rows(str(part), read_clip_arrays(part.path, column), check))
        return
    listing = part.listing
    if part.table is not None:
        yield from validate_rows(str(part.table), _by_table(part, part.table, column), check)
    elif column == "label" and listing.folders:
        yield from validate_rows(listing.name, _by_class(listing), check)
    else:
        raise no_table_error(str(part), [column], "clips")


def unlabeled_clips(part: DataPart) -> Iterator[Row | SkippedRow]:
    """Read `frames` and `name` of a clip, or of all clips in a folder, a zip or a file of arrays.

    Raises: UserError: there are no clips.
    """
    if has_clip_arrays(part):
        records = read_clip_arrays(part.path, None)
        yield from _with_names(validate_rows(str(part), records, lambda fields: fields))
        return
    if part.is_file and not part.is_folder:
        yield Row(str(part), {"frames": part.path, "name": str(part)})
        return
    is_empty = True
    for name, frames in _clips(part.listing):
        is_empty, location = False, _location(part.listing, name)
        yield Row(location, {"frames": frames, "name": location})
    if is_empty:
        raise UserError(f"{part}: no clips in it (videos, folders of images, animated GIF, PNG and WEBP)")


def are_clips(part: DataPart) -> bool:
    """Return whether a part has clips, and not single images.

    A part has clips in three cases. It has arrays of clips. It has a table with a label for each frame, or
    with names of folders, videos or animations. It has folders of labels with videos, animations, or folders
    with a number in their name, of images whose names differ only in a number.
    """
    if has_clip_arrays(part):
        return True
    if not part.is_folder:
        return False
    if part.table is not None:
        if FILE_NAME_COLUMN not in part.columns:
            return False  # the reader of the data reports the error
        name = str(part.first_row.get(FILE_NAME_COLUMN, ""))
        _, frames = _frames(part.listing, name, part.encoding)
        is_sound = name.lower().endswith(AUDIO_SUFFIXES)
        labeled = LABELS_COLUMN in part.columns and "tokens" not in part.columns and not is_sound
        return labeled or isinstance(frames, list) or (not isinstance(frames, str) and _is_animated(frames))
    name, clip = next(_clips(part.listing), ("", []))
    if isinstance(clip, list):
        numbered = {re.sub(r"\d+", "0", file.name) for file in clip}
        parts = Path(name).parts
        is_numbered = len(parts) > 1 and any(
            map(str.isdigit, parts[-1])
        )  # else kinds of a class, such as siamese
        return is_numbered and len(clip) > 1 == len(numbered)
    return _is_animated(clip)


def natural_sort_key(name: str) -> list[Any]:
    """Return a key that sorts numbers in names by value: frame2 comes before frame10."""
    return [int(piece) if piece.isdecimal() else piece for piece in re.split(r"(\d+)", name)]


def _by_table(part: DataPart, table: AnyPath, column: str) -> Iterator[Record]:
    listing = part.listing
    for location, record in read_records(table, [FILE_NAME_COLUMN, column], encoding=part.encoding):
        if isinstance(record, str):
            yield location, record
            continue
        texts = as_texts({FILE_NAME_COLUMN: record[FILE_NAME_COLUMN]})
        if isinstance(texts, str):
            yield location, texts
            continue
        name, frames = _frames(listing, texts[FILE_NAME_COLUMN], part.encoding)
        if isinstance(frames, str):
            yield location, frames
        else:
            yield location, {"frames": frames, "name": _location(listing, name), "label": record[column]}


def _by_class(listing: Listing) -> Iterator[Record]:
    check_class_names(listing)
    for name, frames in _clips(listing):
        label, *rest = Path(name).parts or ["images beside the folders"]
        if not rest and frames:
            yield label, "not in a folder of a label, or its frames not in a folder of their own; move them"
        else:
            yield name, {"frames": frames, "name": _location(listing, name), "label": label}


def _location(listing: Listing, name: str) -> str:
    return os.path.normpath(f"{listing.root}/{name}")


def _with_names(rows: Iterator[Row | SkippedRow]) -> Iterator[Row | SkippedRow]:
    for row in rows:
        yield row if isinstance(row, SkippedRow) else Row(row.location, row.fields | {"name": row.location})


def _clips(listing: Listing) -> Iterator[tuple[str, list[AnyPath] | AnyPath]]:
    """Yield the name and the frames of every clip below a folder: videos, animations, and folders of images.

    Folders without clips come last, as clips without frames.
    """
    image_names: dict[str, list[str]] = {}
    videos = []
    for name in listing.walk():
        if is_image_name(name):
            image_names.setdefault(os.path.dirname(name), []).append(name)
        elif is_video(name):
            videos.append(name)
            yield name, listing.file(name)
    for parent, names in image_names.items():
        if _is_animated(listing.file(names[0])):
            yield from ((name, listing.file(name)) for name in names)
        else:
            yield parent, [listing.file(name) for name in sorted(names, key=natural_sort_key)]
    parents = {str(folder) for name in [*image_names, *videos] for folder in Path(name).parents}
    yield from ((name, []) for name in _empty_folders(listing, parents, image_names.keys()))


def _empty_folders(listing: Listing, parents: Set[str], clips: Set[str], prefix: str = "") -> Iterator[str]:
    """Yield the folders that are neither `clips` nor `parents` of clips."""
    for entry in listing.entries:
        name = f"{prefix}{entry.name}"
        if name in parents:
            yield from _empty_folders(listing.below(entry.name), parents, clips, f"{name}/")
        elif entry.is_folder and name not in clips:
            yield name


def _frames(listing: Listing, name: str, encoding: str) -> tuple[str, list[AnyPath] | AnyPath | str]:
    """Return how the folder or file that a table names is spelled on disk, and its images, or the reason why
    there are none."""
    frames = _find_frames(listing, name)
    if not isinstance(frames, str):
        return name, frames
    others = ((other, _find_frames(listing, other)) for other in other_spellings(name, encoding))
    return next((other for other in others if not isinstance(other[1], str)), (name, frames))


def _find_frames(listing: Listing, name: str) -> list[AnyPath] | AnyPath | str:
    name_inside = os.path.normpath(name)
    path = listing.root / name_inside
    if isinstance(path, Path) and not is_inside(Path(str(listing.root)).resolve(), name):
        return f"{name} leads out of the folder; move the clip into it"
    if path.is_file():
        return path
    if not path.is_dir():
        return f"no such file or folder: {name}; fix the name or leave the row out"
    folder = listing if name_inside == "." else listing.below(name_inside)
    images = sorted(filter(is_image_name, folder.files), key=natural_sort_key)
    return [folder.file(image) for image in images] or f"no frames in {name} ({', '.join(IMAGE_SUFFIXES)})"


def _is_animated(file: AnyPath) -> bool:
    """Return whether a file is a video, or an animation of several frames."""
    from PIL import Image

    if is_video(file.name):
        return True
    content = read_file_bytes(file)
    if isinstance(content, str):
        return False
    try:
        with Image.open(io.BytesIO(content), formats=ANIMATED_FORMATS) as image:
            return getattr(image, "n_frames", 1) > 1
    except Exception:  # many kinds, of Pillow's readers; the reader of the file reports the error
        return False
