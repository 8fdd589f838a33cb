"""Whether folders of texts are classes, such as `cat/1.txt` and `dog/2.txt`, or chapters of one corpus."""

import re
from collections import Counter
from os import stat
from os.path import splitext
from statistics import median
from typing import NamedTuple

from foveal.data.files.data_part import DataPart
from foveal.data.files.file_bytes import read_first_bytes
from foveal.data.files.listing import Listing
from foveal.data.files.split_names import is_document, is_unlabeled_name, list_names
from foveal.data.files.text_files import has_text_suffix, one_file_per_text, read_text_file

MIN_SHARE = 0.9
"""Fraction of the files that must be texts in folders of classes."""
CHAPTER = re.compile(r"(ch|chap|chapter|part|section|act|scene|volume|vol|book|page|letter)s?[\W_]*\d", re.I)
MIN_FILES_PER_CLASS, MAX_TEXT_BYTES = 3, 1 << 15
"""Files in a folder of a class, on average, and bytes of a text to label. Otherwise they may be chapters."""
LOOKED_AT = 20
"""Texts whose sizes are looked at."""


class ClassLook(NamedTuple):
    """What folders of texts look like."""

    is_sure: bool
    """Whether the folders can only be classes."""
    reason: str


def look_at_classes(part: DataPart) -> ClassLook | None:
    """Return why the folders of a folder look like classes of texts; None if they don't."""
    if not part.is_disk_folder or part.table is not None:
        return None
    listing = part.listing
    names = [name for name in one_file_per_text([*listing.walk()]) if not is_document(name)]
    folders = [name for name in part.filled_folders if not is_unlabeled_name(name)]
    texts = [name for name in names if name.count("/") == 1 and has_text_suffix(name)]
    if len(folders) < 2 or len(texts) < MIN_SHARE * len(names):
        return None
    counts = Counter(name.partition("/")[0] for name in texts)
    few = sum(counts[folder] < 2 for folder in folders)
    chapters = sum(CHAPTER.match(splitext(name.rpartition("/")[2])[0]) is not None for name in texts)
    if 2 * few > len(folders) or 2 * chapters > len(texts) or not _is_text(listing, texts[0]):
        return None
    doubt = _doubt(listing, folders, texts)
    return ClassLook(
        not doubt, f"there are texts in the folders {list_names(folders)}{part.empty_folders}{doubt}"
    )


def _doubt(listing: Listing, folders: list[str], texts: list[str]) -> str:
    """Return why the texts may be parts of one corpus. Empty if they can't."""
    sampled = texts[:: len(texts) // LOOKED_AT + 1]
    sizes = [stat(str(listing.file(name))).st_size for name in sampled]
    if len({re.sub(r"\d+", "0", folder) for folder in folders}) == 1:
        return ", whose names differ in a number"
    if len(texts) < MIN_FILES_PER_CLASS * len(folders):
        return f", {len(texts)} in all"
    return f", of about {round(median(sizes)):,} bytes each" if median(sizes) > MAX_TEXT_BYTES else ""


def _is_text(listing: Listing, name: str) -> bool:
    """Return whether a file has text, in whatever encoding."""
    file = listing.file(name)
    return b"\0" not in read_first_bytes(file, 1 << 12) and read_text_file(file, "latin-1").text != ""
