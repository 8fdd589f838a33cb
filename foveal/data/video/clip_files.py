"""Where clips are: videos, animations, folders of frames, folders and zips of them, and arrays."""

import io
import os
import re
from collections.abc import Callable, Iterator, Set
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields, Record, as_texts, as_words
from foveal.data.core.rows import Row, SkippedRow, validate_rows
from foveal.data.files.file_bytes import read_file_bytes
from foveal.data.files.folders import (
    FILE_NAME_COLUMN,
    METADATA_FILES,
    cached_lister,
    is_zip,
    list_visible,
    metadata_table,
    open_folder,
    walk_files,
)
from foveal.data.files.tables import column_names, read_records
from foveal.data.files.utf8 import AnyPath
from foveal.data.images.image_decoding import ANIMATED_FORMATS, IMAGE_SUFFIXES
from foveal.data.video.clip_arrays import ClipArray, array_names, has_clip_arrays, read_clip_arrays
from foveal.data.video.video_decoding import is_video

ClipFrames = list[AnyPath] | AnyPath | ClipArray
"""Of a clip: the files of its pictures in order, the file of a video or an animation, or an array."""
FolderLister = Callable[[AnyPath], list[AnyPath]]
"""What is in a folder, as `list_visible` says it."""
LABELS_COLUMN = "labels"
"""The column with a label for each frame."""


def labeled_clips(data: str, column: str) -> Iterator[Row | SkippedRow]:
    """Each clip at a path: `frames`, its `name`, and `label`, what stands in `column`: a text, or of the
    column `labels` a list of them.

    Errors: UserError for what concerns all of it.
    """

    def check(fields: Fields) -> Fields | str:
        label = fields.pop("label")
        if column == LABELS_COLUMN and label == []:  # of no frames: which is said of them
            return fields | {"label": label}
        if column == LABELS_COLUMN:
            words = as_words({LABELS_COLUMN: label})
            return words if isinstance(words, str) else fields | {"label": [*map(str.strip, words["tokens"])]}
        texts = as_texts({column: label})
        return texts if isinstance(texts, str) else fields | {"label": texts[column].strip()}

    if has_clip_arrays(data):
        yield from _with_names(validate_rows(data, read_clip_arrays(Path(data), column), check))
        return
    folder = open_folder(data)
    table = metadata_table(folder)
    if table is not None:
        yield from validate_rows(str(table), _by_table(folder, table, column), check)
    elif column == "label" and any(inside.is_dir() for inside in list_visible(folder)):
        yield from validate_rows(str(folder).rstrip("/"), _by_class(folder), check)
    else:
        classes = ", nor a folder of clips for each label" if column == "label" else ""
        raise UserError(
            f"{data}: no {' or '.join(METADATA_FILES)} in it (columns {FILE_NAME_COLUMN}, {column}){classes}; make one"
        )


def unlabeled_clips(data: str) -> Iterator[Row | SkippedRow]:
    """A clip, or all of a folder, a zip or a file of arrays: `frames` and `name`."""
    path = Path(data)
    if has_clip_arrays(data):
        yield from _with_names(validate_rows(data, read_clip_arrays(path, None), lambda fields: fields))
        return
    if path.is_file() and not is_zip(path):
        yield Row(data, {"frames": path, "name": data})
        return
    none, folder = True, open_folder(data)
    for name, frames in _clips(folder):
        none, place = False, _location(folder, name)
        yield Row(place, {"frames": frames, "name": place})
    if none:
        raise UserError(f"{data}: no clips in it (videos, folders of pictures, GIF, PNG and WEBP that move)")


def is_clip_data(data: str) -> bool:
    """Whether a path holds clips, and not single pictures: arrays of them; a table with a label for each
    frame, or that names folders, videos or animations; or in each folder of a label videos, animations, or
    folders of pictures whose names differ in a number alone."""
    if has_clip_arrays(data):
        return True
    if not (Path(data).is_dir() or (Path(data).is_file() and is_zip(Path(data)))):
        return False
    try:
        folder = open_folder(data)
        table = metadata_table(folder)
        if table is not None:
            found = (one for _, one in read_records(table, [FILE_NAME_COLUMN]) if isinstance(one, dict))
            frames = _frames(folder, str(next(found, {FILE_NAME_COLUMN: ""})[FILE_NAME_COLUMN]), list_visible)
            told = LABELS_COLUMN in column_names(table) and "tokens" not in column_names(table)
            return told or isinstance(frames, list) or (not isinstance(frames, str) and _is_animated(frames))
        name, frames = next(_clips(folder), ("", []))
    except UserError:  # whose reader says what is wrong
        return False
    if isinstance(frames, list):
        numbered = {re.sub(r"\d+", "0", file.name) for file in frames}
        return len(Path(name).parts) > 1 and len(frames) > 1 == len(numbered)
    return _is_animated(frames)


def clip_columns(data: str) -> set[str]:
    """What is said of the clips there: the names of the columns, or arrays; a folder's name is a `label`."""
    if has_clip_arrays(data):
        return array_names(Path(data))
    table = metadata_table(open_folder(data))
    return {"label"} if table is None else set(column_names(table))


def natural_sort_key(name: str) -> list[Any]:
    """Numbers in it by their size: frame2 stands before frame10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _by_table(folder: AnyPath, table: AnyPath, column: str) -> Iterator[Record]:
    listed = cached_lister(folder)
    for place, found in read_records(table, [FILE_NAME_COLUMN, column]):
        if isinstance(found, dict):
            texts = as_texts({FILE_NAME_COLUMN: found[FILE_NAME_COLUMN]})
            frames = texts if isinstance(texts, str) else _frames(folder, texts[FILE_NAME_COLUMN], listed)
            named = {
                "frames": frames,
                "name": _location(folder, found[FILE_NAME_COLUMN]),
                "label": found[column],
            }
            yield place, frames if isinstance(frames, str) else named
        else:
            yield place, found


def _by_class(folder: AnyPath) -> Iterator[Record]:
    for name, frames in _clips(folder):
        label, *rest = Path(name).parts or ["pictures beside the folders"]
        if not rest and frames:
            yield label, "stands in no folder of a label, or its frames in no folder of their own; move them"
        else:
            yield name, {"frames": frames, "name": _location(folder, name), "label": label}


def _location(folder: AnyPath, name: str) -> str:
    return os.path.normpath(f"{folder}/{name}")


def _with_names(rows: Iterator[Row | SkippedRow]) -> Iterator[Row | SkippedRow]:
    for row in rows:
        yield row if isinstance(row, SkippedRow) else Row(row.location, row.fields | {"name": row.location})


def _clips(folder: AnyPath) -> Iterator[tuple[str, list[AnyPath] | AnyPath]]:
    """Every clip below a folder by its name: videos, animations, and folders of pictures; then the folders
    without any, as clips of no frames."""
    inside: dict[str, list[str]] = {}
    alone = []
    for name in walk_files(folder):
        if name.lower().endswith(IMAGE_SUFFIXES):
            inside.setdefault(os.path.dirname(name), []).append(name)
        elif is_video(name):
            alone.append(name)
            yield name, folder / name
    for parent, names in inside.items():
        if _is_animated(folder / names[0]):
            yield from ((name, folder / name) for name in names)
        else:
            yield parent, [folder / name for name in sorted(names, key=natural_sort_key)]
    above = {str(one) for name in [*inside, *alone] for one in Path(name).parents}
    yield from ((name, []) for name in _empty(folder, cached_lister(folder), above, inside.keys()))


def _empty(
    folder: AnyPath, list_folder: FolderLister, above: Set[str], clips: Set[str], at: str = ""
) -> Iterator[str]:
    """The folders that neither are `clips` nor lie `above` some."""
    for path in list_folder(folder):
        name = f"{at}{path.name}"
        if name in above:
            yield from _empty(path, list_folder, above, clips, f"{name}/")
        elif path.is_dir() and name not in clips:
            yield name


def _frames(folder: AnyPath, name: str, list_folder: FolderLister) -> list[AnyPath] | AnyPath | str:
    """What a table calls by that name: a folder's pictures, or a file; or why there is nothing."""
    path = folder / os.path.normpath(name)
    if isinstance(path, Path) and not path.resolve().is_relative_to(Path(str(folder)).resolve()):
        return f"{name} leads out of the folder; move the clip into it"
    if path.is_file():
        return path
    if not path.is_dir():
        return f"no such file or folder: {name}; mend the name or leave the row out"
    files = [file for file in list_folder(path) if file.name.lower().endswith(IMAGE_SUFFIXES)]
    in_order = sorted(files, key=lambda file: natural_sort_key(file.name))
    return in_order or f"no frames in {name} ({', '.join(IMAGE_SUFFIXES)})"


def _is_animated(file: AnyPath) -> bool:
    """Whether a file is a video, or an animation of several frames."""
    from PIL import Image

    if is_video(file.name):
        return True
    content = read_file_bytes(file)
    if isinstance(content, str):
        return False
    try:
        with Image.open(io.BytesIO(content), formats=ANIMATED_FORMATS) as image:
            return getattr(image, "n_frames", 1) > 1
    except Exception:  # of Pillow's readers, of many kinds: whoever reads the file says why
        return False
