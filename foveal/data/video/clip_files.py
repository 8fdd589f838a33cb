"""Where clips are: videos, animations, folders of frames, folders and zips of them, and arrays."""

import io
import os
import re
from collections.abc import Callable, Iterator, Set
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields, Found, as_texts, as_words
from foveal.data.core.rows import Aside, Row, checked
from foveal.data.files.folders import NAME, TABLES, files_in, lister, open_folder, visible
from foveal.data.files.tables import columns_of, read_records
from foveal.data.files.utf8 import File
from foveal.data.images.image_decoding import MOVING, SUFFIXES
from foveal.data.images.image_files import content_of, is_archive, table_of
from foveal.data.video.clip_arrays import Stored, arrays_in, is_arrays, names_in
from foveal.data.video.video_decoding import is_video

Frames = list[File] | File | Stored
"""Of a clip: the files of its pictures in order, the file of a video or an animation, or an array."""
Listed = Callable[[File], list[File]]
"""What is in a folder, as `visible` says it."""
LABELS = "labels"
"""The column with a label for each frame."""


def labelled_clips(data: str, column: str) -> Iterator[Row | Aside]:
    """Each clip at a path: `frames`, its `name`, and `label`, what stands in `column`: a text, or of the
    column `labels` a list of them.

    Errors: UserError for what concerns all of it.
    """

    def check(fields: Fields) -> Fields | str:
        label = fields.pop("label")
        if column == LABELS and label == []:  # of no frames: which is said of them
            return fields | {"label": label}
        if column == LABELS:
            words = as_words({LABELS: label})
            return words if isinstance(words, str) else fields | {"label": [*map(str.strip, words["tokens"])]}
        texts = as_texts({column: label})
        return texts if isinstance(texts, str) else fields | {"label": texts[column].strip()}

    if is_arrays(data):
        yield from _named(checked(data, arrays_in(Path(data), column), check))
        return
    folder = open_folder(data)
    table = table_of(folder)
    if table is not None:
        yield from checked(str(table), _by_table(folder, table, column), check)
    elif column == "label" and any(inside.is_dir() for inside in visible(folder)):
        yield from checked(str(folder).rstrip("/"), _by_class(folder), check)
    else:
        classes = ", nor a folder of clips for each label" if column == "label" else ""
        raise UserError(
            f"{data}: no {' or '.join(TABLES)} in it (columns {NAME}, {column}){classes}; make one"
        )


def unlabelled_clips(data: str) -> Iterator[Row | Aside]:
    """A clip, or all of a folder, a zip or a file of arrays: `frames` and `name`."""
    path = Path(data)
    if is_arrays(data):
        yield from _named(checked(data, arrays_in(path, None), lambda fields: fields))
        return
    if path.is_file() and not is_archive(path):
        yield Row(data, {"frames": path, "name": data})
        return
    none, folder = True, open_folder(data)
    for name, frames in _clips(folder):
        none, place = False, _at(folder, name)
        yield Row(place, {"frames": frames, "name": place})
    if none:
        raise UserError(f"{data}: no clips in it (videos, folders of pictures, GIF, PNG and WEBP that move)")


def are_clips(data: str) -> bool:
    """Whether a path holds clips, and not single pictures: arrays of them; a table with a label for each
    frame, or that names folders, videos or animations; or in each folder of a label videos, animations, or
    folders of pictures whose names differ in a number alone."""
    if is_arrays(data):
        return True
    if not (Path(data).is_dir() or (Path(data).is_file() and is_archive(Path(data)))):
        return False
    try:
        folder = open_folder(data)
        table = table_of(folder)
        if table is not None:
            found = (one for _, one in read_records(table, [NAME]) if isinstance(one, dict))
            frames = _frames(folder, str(next(found, {NAME: ""})[NAME]), visible)
            told = LABELS in columns_of(table) and "tokens" not in columns_of(table)
            return told or isinstance(frames, list) or (not isinstance(frames, str) and _moves(frames))
        name, frames = next(_clips(folder), ("", []))
    except UserError:  # whose reader says what is wrong
        return False
    if isinstance(frames, list):
        numbered = {re.sub(r"\d+", "0", file.name) for file in frames}
        return len(Path(name).parts) > 1 and len(frames) > 1 == len(numbered)
    return _moves(frames)


def columns_at(data: str) -> set[str]:
    """What is said of the clips there: the names of the columns, or arrays; a folder's name is a `label`."""
    if is_arrays(data):
        return names_in(Path(data))
    table = table_of(open_folder(data))
    return {"label"} if table is None else set(columns_of(table))


def natural(name: str) -> list[Any]:
    """Numbers in it by their size: frame2 stands before frame10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _by_table(folder: File, table: File, column: str) -> Iterator[Found]:
    listed = lister(folder)
    for place, found in read_records(table, [NAME, column]):
        if isinstance(found, dict):
            texts = as_texts({NAME: found[NAME]})
            frames = texts if isinstance(texts, str) else _frames(folder, texts[NAME], listed)
            named = {"frames": frames, "name": _at(folder, found[NAME]), "label": found[column]}
            yield place, frames if isinstance(frames, str) else named
        else:
            yield place, found


def _by_class(folder: File) -> Iterator[Found]:
    for name, frames in _clips(folder):
        label, *rest = Path(name).parts or ["pictures beside the folders"]
        if not rest and frames:
            yield label, "stands in no folder of a label, or its frames in no folder of their own; move them"
        else:
            yield name, {"frames": frames, "name": _at(folder, name), "label": label}


def _at(folder: File, name: str) -> str:
    return os.path.normpath(f"{folder}/{name}")


def _named(rows: Iterator[Row | Aside]) -> Iterator[Row | Aside]:
    for row in rows:
        yield row if isinstance(row, Aside) else Row(row.place, row.fields | {"name": row.place})


def _clips(folder: File) -> Iterator[tuple[str, list[File] | File]]:
    """Every clip below a folder by its name: videos, animations, and folders of pictures; then the folders
    without any, as clips of no frames."""
    inside: dict[str, list[str]] = {}
    alone = []
    for name in files_in(folder):
        if name.lower().endswith(SUFFIXES):
            inside.setdefault(os.path.dirname(name), []).append(name)
        elif is_video(name):
            alone.append(name)
            yield name, folder / name
    for parent, names in inside.items():
        if _moves(folder / names[0]):
            yield from ((name, folder / name) for name in names)
        else:
            yield parent, [folder / name for name in sorted(names, key=natural)]
    above = {str(one) for name in [*inside, *alone] for one in Path(name).parents}
    yield from ((name, []) for name in _empty(folder, lister(folder), above, inside.keys()))


def _empty(folder: File, listed: Listed, above: Set[str], clips: Set[str], at: str = "") -> Iterator[str]:
    """The folders that neither are `clips` nor lie `above` some."""
    for path in listed(folder):
        name = f"{at}{path.name}"
        if name in above:
            yield from _empty(path, listed, above, clips, f"{name}/")
        elif path.is_dir() and name not in clips:
            yield name


def _frames(folder: File, name: str, listed: Listed) -> list[File] | File | str:
    """What a table calls by that name: a folder's pictures, or a file; or why there is nothing."""
    path = folder / os.path.normpath(name)
    if isinstance(path, Path) and not path.resolve().is_relative_to(Path(str(folder)).resolve()):
        return f"{name} leads out of the folder; move the clip into it"
    if path.is_file():
        return path
    if not path.is_dir():
        return f"no such file or folder: {name}; mend the name or leave the row out"
    files = [file for file in listed(path) if file.name.lower().endswith(SUFFIXES)]
    in_order = sorted(files, key=lambda file: natural(file.name))
    return in_order or f"no frames in {name} ({', '.join(SUFFIXES)})"


def _moves(file: File) -> bool:
    """Whether a file is a video, or an animation of several frames."""
    from PIL import Image

    if is_video(file.name):
        return True
    content = content_of(file)
    if isinstance(content, str):
        return False
    try:
        with Image.open(io.BytesIO(content), formats=MOVING) as image:
            return getattr(image, "n_frames", 1) > 1
    except Exception:  # of Pillow's readers, of many kinds: whoever reads the file says why
        return False
