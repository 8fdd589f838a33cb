"""Splits that stand where they would be taken for classes: below the classes, or as folds."""

import re
import shlex
from collections.abc import Callable

from foveal.core.errors import UserError
from foveal.data.files.data_part import DataPart
from foveal.data.files.listing import Listing
from foveal.data.files.split_names import is_split_like, list_names, split_of_name
from foveal.store.cache import cache_folder

FOLD = re.compile(r"(cv|folds?|splits?)[-_ ]?\d+", re.I)
"""A name that is surely none of a class."""
PERHAPS_FOLD = re.compile(r"(parts?|sets?|subsets?|batch)[-_ ]?\d+", re.I)
"""A name that is none of a class if there are the same folders in each."""
MAX_LOOKED_AT = 20
"""Folders that are looked at."""
REMOVE_EMPTY = "find . -depth -type d -empty -delete"


def check_splits_outside(whole: DataPart, has_media: Callable[[DataPart], bool]) -> None:
    """Check that the splits of a folder or zip are not inside its classes, and are no folds.

    Raises: UserError: the splits are inside the classes, or are folds. The message says how to move them.
    """
    names = whole.listing.folders
    if len(names) < 2 or any(map(is_split_like, names)):
        return
    inside = [whole.listing.below(name) for name in names[:MAX_LOOKED_AT]]
    _check_classes(whole, names, inside)
    _check_folds(whole, names, inside, has_media)


def _check_classes(whole: DataPart, names: list[str], inside: list[Listing]) -> None:
    folders = {folder for each in inside for folder in each.folders}
    ordered = sorted(folders, key=lambda name: (split_of_name(name) != "train", name))
    splits = {split_of_name(name) for name in ordered}
    has_splits = len(splits) > 1 and "train" in splits and None not in splits
    if has_splits and not any(each.files for each in inside) and all(each.folders for each in inside):
        moved = 'for d in */*/; do mkdir -p "${d#*/}" && mv "$d" "${d#*/}${d%%/*}"; done'
        raise UserError(
            f"{whole}: {list_names(ordered)} are inside the folders {list_names(names)}; move the splits "
            f"outside, such as {ordered[0]}/{names[0]}{_command(whole, moved)}"
        )


def _check_folds(
    whole: DataPart, names: list[str], inside: list[Listing], has_media: Callable[[DataPart], bool]
) -> None:
    shared = [name for name in inside[0].folders if all(name in each.folders for each in inside)]
    if all(map(FOLD.fullmatch, names)):
        are_folds = bool(shared) or has_media(whole)
    else:
        are_folds = all(map(PERHAPS_FOLD.fullmatch, names)) and len(shared) > 1 and has_media(whole)
    if are_folds:
        moved = (
            f"mv {shlex.quote(names[-1])} test && for f in {_pattern(names[0])}/*/*; do c=${{f#*/}}; "
            'c=${c%%/*}; mkdir -p "train/$c" && mv "$f" "train/$c/${f%%/*}-${f##*/}"; done'
        )
        raise UserError(
            f"{whole}: {list_names(names)} look like folds of cross-validation, not like classes; move one "
            f"to test/CLASS, the others to train/CLASS{_command(whole, moved) if shared else ''}"
        )


def _command(whole: DataPart, moved: str) -> str:
    """Return the command that moves the splits of a folder on disk. Empty for a zip, unpacked or not."""
    if not whole.is_disk_folder or whole.path.is_relative_to(cache_folder()):
        return ""
    return f": cd {shlex.quote(str(whole))} && {moved} && {REMOVE_EMPTY}"


def _pattern(name: str) -> str:
    """Return the pattern of the shell for the names that differ from `name` in the number."""
    return re.sub(r"(\s)", r"\\\1", re.sub(r"\d+$", "*", name))
