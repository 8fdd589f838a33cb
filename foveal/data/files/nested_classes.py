"""Folders that all hold folders of the same names, so that the outer or the inner ones may be the classes."""

import re
import shlex
from collections.abc import Callable

from foveal.core.errors import UserError
from foveal.data.files.data_part import DataPart
from foveal.data.files.listing import Listing
from foveal.data.files.misplaced_splits import MAX_LOOKED_AT, REMOVE_EMPTY
from foveal.data.files.split_names import is_split_like, list_names
from foveal.store.cache import cache_folder


def check_nested_classes(whole: DataPart, has_single_files: Callable[[DataPart], bool]) -> None:
    """Check that the folders of files with a label each don't all hold folders of the same names.

    Raises: UserError: the folders do. The message says how to move the files for each reading.
    """
    names = whole.listing.folders
    if sum(map(is_split_like, names)) < 2 and (inner := shared_folders(whole)) and has_single_files(whole):
        raise UserError(describe_nested_classes(whole, inner))


def shared_folders(whole: DataPart) -> list[str]:
    """Return the names of the folders in each folder; empty if the names differ, are fewer than two, or
    there are other files."""
    if not whole.is_folder or whole.table is not None or len(whole.listing.folders) < 2:
        return []
    inside = [whole.listing.below(name) for name in whole.listing.folders[:MAX_LOOKED_AT]]
    shared = inside[0].folders
    is_shared = len(shared) > 1 and all(each.folders == shared and not each.files for each in inside)
    return shared if is_shared and all(_are_filled(each) for each in inside) else []


def holds_numbered_parts(whole: DataPart) -> bool:
    """Return whether the folders differ in a number, and each holds the same folders without numbers."""
    inner = shared_folders(whole)
    outer = {re.sub(r"\d+", "", name) for name in whole.listing.folders} if inner else set()
    return len(outer) == 1 and not any(re.search(r"\d", name) for name in inner)


def describe_nested_classes(whole: DataPart, inner: list[str]) -> str:
    """Return the two readings of the folders, with the command for each."""
    outer = list_names(whole.listing.folders)
    by_inner = _command(whole, 'mkdir -p "$c" && mv "$f" "$c/$o-$n"')
    by_outer = _command(whole, 'mv "$f" "$o/$c-$n"')
    return (
        f"{whole}: {list_names(inner)} are in each of {outer}; if {list_names(inner)} are the classes, move "
        f"them outside{by_inner}; if {outer} are the classes, move the files out of the folders inside"
        f"{by_outer} (if they are splits, rename them to train, valid and test)"
    )


def _are_filled(folder: Listing) -> bool:
    """Return whether the folders in a folder have files of their own, and no folders."""
    inside = [folder.below(name) for name in folder.folders]
    return all(each.files and not each.folders for each in inside)


def _command(whole: DataPart, moved: str) -> str:
    """Return the command that moves the files of a folder on disk. Empty for a zip, unpacked or not."""
    if not whole.is_disk_folder or whole.path.is_relative_to(cache_folder()):
        return ""
    taken = "o=${f%%/*}; n=${f##*/}; c=${f#*/}; c=${c%%/*}"
    return f": cd {shlex.quote(str(whole))} && for f in */*/*; do {taken}; {moved}; done && {REMOVE_EMPTY}"
