"""Folders of pictures with boxes or masks of objects, which no task learns: YOLO, Pascal VOC, COCO, masks."""

import os
from collections.abc import Iterator, Sequence
from itertools import islice

from foveal.data.files.data_part import DataPart
from foveal.data.files.file_bytes import read_first_bytes
from foveal.data.files.listing import Listing
from foveal.data.files.split_names import split_of_name

ANNOTATION_FOLDERS = {
    "labels",
    "label",
    "annotations",
    "annotation",
    "annots",
    "xmls",
    "xml",
    "boxes",
    "bboxes",
}
"""Names of folders, in lower case, that may hold a file of boxes for each picture."""
MASK_FOLDERS = {
    "masks",
    "mask",
    "labels",
    "annotations",
    "segmentations",
    "segmentationclass",
    "gt",
    "gtfine",
}
"""Names of folders that may hold a mask for each picture."""
PICTURE_FOLDERS = {"images", "image", "imgs", "img", "jpegimages", "pictures", "photos", "leftimg8bit"}
FORMATS = {".txt": "YOLO", ".xml": "Pascal VOC", ".json": "COCO"}
MIN_NUMBERS = 4
"""Numbers of a box: its center, width and height. The corners of a polygon have more."""
HEAD_BYTES = 1 << 16
"""First bytes of a file that are looked at."""
MAX_LOOKED_AT = 20
"""Folders, and files of each folder, that are looked at."""


def annotation_error(part: DataPart, suffixes: tuple[str, ...]) -> str:
    """Say that there are boxes or masks beside pictures, and what is read in their place. Empty without.

    `suffixes` are those of pictures.
    """
    listing = part.listing
    folders = [*_folders(listing)]
    named = [name for name in folders if _is_named(name, PICTURE_FOLDERS)]
    pictures = next(iter([*named, *filter(split_of_name, listing.folders)]), "")
    if folders and not pictures:
        return ""
    inside = listing.below(pictures) if pictures else listing
    if not any(name.lower().endswith(suffixes) for name in _first_files(inside)):
        return ""
    named = [name for name in folders if _is_named(name, ANNOTATION_FOLDERS)]
    for folder in named or ([""] if not folders else []):
        for name in _first_files(listing.below(folder) if folder else listing):
            path = f"{folder}/{name}" if folder else name
            if _has_boxes(listing, path):
                return _error(part, pictures, f"{path} has boxes ({FORMATS[_suffix(path)]}); detection")
    stems = {os.path.splitext(name)[0] for name in _first_files(inside)}
    for folder in (name for name in folders if _is_named(name, MASK_FOLDERS)):
        first = next((name for name in _first_files(listing.below(folder))), "")
        if first.lower().endswith(suffixes) and os.path.splitext(first)[0] in stems:
            return _error(part, pictures, f"{folder} has masks of the pictures in {pictures}; segmentation")
    return ""


def _error(part: DataPart, pictures: str, finding: str) -> str:
    alone = f"; for the pictures alone, give {part}/{pictures}" if pictures else ""
    return (
        f"{part}: {finding} is not offered. To label whole pictures, move them to a folder for each class, "
        f"or write metadata.csv (columns file_name and label) beside them{alone}"
    )


def _folders(listing: Listing) -> Iterator[str]:
    """Yield the folders, and those in the first of them."""
    yield from listing.folders
    for name in listing.folders[:MAX_LOOKED_AT]:
        yield from (f"{name}/{inside}" for inside in listing.below(name).folders)


def _first_files(listing: Listing) -> list[str]:
    return [*islice(listing.walk(), MAX_LOOKED_AT)]


def _is_named(folder: str, names: set[str]) -> bool:
    return folder.rpartition("/")[2].lower() in names


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _has_boxes(listing: Listing, name: str) -> bool:
    """Return whether a file has boxes of objects."""
    if _suffix(name) not in FORMATS:
        return False
    text = read_first_bytes(listing.file(name), HEAD_BYTES).decode("utf-8", "replace")
    if _suffix(name) == ".txt":
        return _are_boxes(text.splitlines(), is_cut=len(text) >= HEAD_BYTES)
    return ("<bndbox>" if _suffix(name) == ".xml" else '"bbox"') in text


def _are_boxes(lines: Sequence[str], is_cut: bool) -> bool:
    """Return whether each line has the number of a class, and the numbers of a box or of a polygon.

    The last line may be cut anywhere if `is_cut`. A line that is alone loses its last word then.
    """
    rows = [words for line in lines if (words := line.split())]
    if is_cut:
        rows = rows[:-1] or [words[:-1] for words in rows]
    return bool(rows) and all(map(_is_box, rows))


def _is_box(words: Sequence[str]) -> bool:
    if len(words) <= MIN_NUMBERS or not words[0].isdecimal():
        return False
    try:
        return bool([float(word) for word in words])
    except ValueError:
        return False
