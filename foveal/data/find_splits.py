"""The splits of DATA: folders, arrays and files whose names say so; and the shards of a table."""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from foveal.core.errors import UserError
from foveal.data.audio.audio_source import AUDIO_SUFFIXES
from foveal.data.core.hash_split import SplitName
from foveal.data.files.annotations import annotation_error
from foveal.data.files.data_part import METADATA_FILES, DataPart, open_part, open_shards
from foveal.data.files.misplaced_splits import check_splits_outside
from foveal.data.files.nested_classes import check_nested_classes
from foveal.data.files.sidecars import without_sidecars
from foveal.data.files.split_names import (
    SplitNames,
    are_shards,
    group_by_split,
    is_document,
    is_split_like,
    is_unlabeled_name,
    list_names,
    split_of_name,
)
from foveal.data.files.tables import TABLE_SUFFIXES, column_names
from foveal.data.images.image_arrays import array_splits
from foveal.data.images.image_decoding import IMAGE_SUFFIXES
from foveal.data.series.series_files import SERIES_READERS
from foveal.data.text.conll import CONLL_SUFFIXES
from foveal.data.video.clip_files import are_clips
from foveal.data.video.video_decoding import VIDEO_SUFFIXES

ROW_SUFFIXES = {*TABLE_SUFFIXES, *SERIES_READERS, *CONLL_SUFFIXES}
"""Suffixes of files with rows."""
TEXT_SUFFIXES = {".txt", ".text", ".tokens", ".raw"}
"""Suffixes of texts that can be a split of a corpus. Files of source code, such as test.py, are no splits."""
MEDIA_SUFFIXES = (*IMAGE_SUFFIXES, *AUDIO_SUFFIXES, *VIDEO_SUFFIXES)
MIXED_SHARE = 3
"""A folder is no text if one of so many files is a picture, recording or video."""


@dataclass(frozen=True)
class FoundSplits:
    """The splits of DATA. `train` is always present: DATA without splits is `train`."""

    parts: dict[SplitName, DataPart]
    unused: tuple[str, ...] = ()
    """The names of files and folders beside the splits, which are not read."""

    def only(self, used: Collection[SplitName]) -> "FoundSplits":
        """Return the splits `used`, with the others among the files that are not read."""
        parts = {split: part for split, part in self.parts.items() if split in used}
        others = [_shown_name(part) for split, part in self.parts.items() if split not in used]
        return FoundSplits(parts, (*others, *self.unused))

    def __str__(self) -> str:
        """Return the names of the splits and of unused files, for a message. Empty without splits."""
        if len(self.parts) == 1 and not self.unused and not self.parts["train"].shards:
            return ""
        named = ", ".join(f"{split} {_shown_name(part)}" for split, part in self.parts.items())
        return named + (f"; not used: {list_names(self.unused)}" if self.unused else "")


def find_splits(whole: DataPart) -> FoundSplits:
    """Return the splits of DATA.

    Splits are folders such as `train` and `test`, also in a zip; arrays of a file; IDX files; or files such
    as `train.tsv`. Tables that are shards are one split.

    Raises: UserError: two folders or files are the same split, the files of the splits have several formats,
        only some of the folders look like splits, the splits are inside the classes, the classes may be the
        outer or the inner folders, or there are boxes or masks of objects.
    """
    if whole.is_folder and whole.table is None:
        if error := annotation_error(whole, IMAGE_SUFFIXES):
            raise UserError(error)
        check_splits_outside(whole, has_media)
        check_nested_classes(whole, lambda part: has_media(part) and not are_clips(part))
    arrays = {split: open_part(location) for split, location in array_splits(whole).items()}
    return _split_folders(whole) or (FoundSplits(arrays) if arrays else _split_files(whole))


def has_media(part: DataPart) -> bool:
    """Return whether most of a folder's first files are pictures, recordings or videos."""
    first = without_sidecars(part.first_files)
    return 2 * sum(name.lower().endswith(MEDIA_SUFFIXES) for name in first) > len(first)


def mixed_files_hint(part: DataPart) -> str:
    """Say that many of a folder's files are pictures, recordings or videos, of no single kind. Empty if few
    are."""
    if not part.is_folder:
        return ""
    names = [*part.listing.walk()]
    media = [name for name in names if name.lower().endswith(MEDIA_SUFFIXES)]
    if MIXED_SHARE * len(media) < len(names) or not media:
        return ""
    where = f" in {list_names(part.filled_folders)}" if part.filled_folders else ""
    return (
        f"there are files of several kinds{where}, such as {media[0]}; give a folder of one kind, or write "
        "metadata.csv (columns file_name, and text or label) beside the files"
    )


def _split_folders(whole: DataPart) -> FoundSplits | None:
    """Return the folders of the splits of a folder or zip; None if there is a table or any other folder.

    Raises: UserError: several folders are the same split, or only some of the folders look like splits.
    """
    if not whole.is_folder:
        return None
    listing = whole.listing
    names = listing.folders
    if any(name in METADATA_FILES for name in listing.files) or not any(map(is_split_like, names)):
        return None
    splits = {name: split_of_name(name) for name in names if not is_unlabeled_name(name)}
    if "train" in splits.values() and None not in splits.values():
        if len(set(splits.values())) < len(splits):
            listed = ", ".join(splits)
            raise UserError(
                f"{whole}: {listed} are several folders for the same split; keep one folder per split"
            )
        grouped = group_by_split(whole, names)
        parts = {
            split: open_part(f"{listing.name}/{folders[0]}", listing, whole.encoding)
            for split, folders in grouped.splits.items()
        }
        return FoundSplits(parts, (*grouped.unused, *listing.files))
    similar = [name for name, split in splits.items() if split is not None]
    if (len(similar) > 1 or (len(names) > 1 and all(map(is_split_like, names)))) and has_media(whole):
        others = [name for name in names if name not in similar]
        beside = f", and {list_names(others)} not" if similar and others else ""
        raise UserError(
            f"{whole}: {list_names(similar or names)} look like splits{beside}; rename the folders to train, "
            "valid and test, and move other folders away (or rename all of them, if they are classes)"
        )
    return None


def _split_files(whole: DataPart) -> FoundSplits:
    """Return files such as `train.tsv` by split. Without such files, return all of DATA as `train`.

    Raises: UserError: the files have several formats.
    """
    unsplit = FoundSplits({"train": whole})
    if not whole.is_disk_folder:
        return unsplit
    files, folders = whole.listing.files, whole.listing.folders
    rows = [name for name in files if Path(name).suffix.lower() in ROW_SUFFIXES and not is_document(name)]
    named = [name for name in rows if split_of_name(Path(name).stem)]
    if any(split_of_name(Path(name).stem) == "train" for name in named):
        return _by_name(whole, named)
    texts = [name for name in files if Path(name).suffix.lower() in TEXT_SUFFIXES]
    named_texts = [name for name in texts if split_of_name(Path(name).stem)]
    text_splits = {split_of_name(Path(name).stem) for name in named_texts}
    if not rows and "train" in text_splits and len(text_splits) > 1 and not has_media(whole):
        return _by_name(whole, named_texts)
    others = [name for name in files if name not in rows and not is_document(name)]
    if len(folders) == 1 and not rows and not others and not named:
        below = open_part(f"{whole}/{folders[0]}", whole.listing, whole.encoding)
        inside = find_splits(below)
        return inside if len(inside.parts) > 1 or inside.parts["train"] is not below else unsplit
    if (
        rows
        and not named
        and not others
        and not folders
        and whole.table is None
        and _is_one_table(whole, rows)
    ):
        paths = [whole.path / name for name in rows]
        return FoundSplits({"train": open_shards(paths, whole.encoding)}, _beside(whole, rows))
    return unsplit


def _by_name(whole: DataPart, names: list[str]) -> FoundSplits:
    """Return the files of the splits.

    Raises: UserError: the files have several formats, or a split has several files that are not shards.
    """
    if len({Path(name).suffix.lower() for name in names}) > 1:
        raise UserError(
            f"{whole}: {', '.join(names)} have several formats; keep the files of a single format"
        )
    stems = {Path(name).stem: name for name in names}
    grouped: SplitNames = group_by_split(whole, stems)
    parts = {
        split: open_shards([whole.path / stems[stem] for stem in same], whole.encoding)
        for split, same in grouped.splits.items()
    }
    used = [stems[stem] for same in grouped.splits.values() for stem in same]
    return FoundSplits(parts, _beside(whole, used))


def _beside(whole: DataPart, used: list[str]) -> tuple[str, ...]:
    listing = whole.listing
    return (*(name for name in listing.files if name not in used), *listing.folders)


def _is_one_table(whole: DataPart, names: list[str]) -> bool:
    """Return whether files are shards of a table, or have the same columns."""
    if len(names) == 1:
        return True
    suffixes = {Path(name).suffix.lower() for name in names}
    if len(suffixes) > 1 or not suffixes <= {*TABLE_SUFFIXES, *CONLL_SUFFIXES}:
        return False
    if are_shards(names):
        return True
    with suppress(UserError):
        return len({tuple(column_names(whole.path / name, whole.encoding)) for name in names}) == 1
    return False


def _shown_name(part: DataPart) -> str:
    more = f" and {len(part.shards) - 1:,} more" if part.shards else ""
    return part.path.name + more
