"""Splits of a corpus into train, valid and test by content alone, without leakage.

A text file is cut by position (train first, then valid, then test), so that no held-out line is between
training lines. Files of a folder and rows of a table are not cut. The hash of their content decides their
split: equal files or rows are in the same split, and neither names nor order matter.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from foveal.data.core.hash_split import Fractions, SplitName, check_fractions, split_of_text
from foveal.data.files.utf8 import BLOCK_BYTES, open_file, read_text
from foveal.data.text.corpus import CorpusSource, Document, FileContent, TextFile, TextFolder, TextTable


def split_documents(source: CorpusSource, fractions: Fractions) -> Iterator[tuple[SplitName, Document]]:
    """Yield each document with its split. The splits are disjoint, and together they contain the whole
    source."""
    check_fractions(fractions)
    if not fractions:
        yield from (("train", document) for document in source.documents())
    elif isinstance(source, TextFile):
        yield from _split_file(source.path, fractions)
    elif isinstance(source, TextTable):
        yield from ((split_of_text("".join(row.pieces), fractions), row) for row in source.documents())
    else:
        yield from _split_folder(source, fractions)


def _split_file(path: Path, fractions: Fractions) -> Iterator[tuple[SplitName, Document]]:
    """Cut a file by the fractions. A cut is at the previous line end, or inside a line that is too long."""
    size = path.stat().st_size
    ends, end = [], 1.0
    for fraction in fractions.values():
        end -= fraction
    reach = int(size * min(fractions.values()) / 2)
    for fraction in fractions.values():
        ends.append(_cut_near(path, int(size * end), reach))
        end += fraction
    for split, start, stop in zip(("train", *fractions), (0, *ends), (*ends, size), strict=True):
        yield split, Document(f"{path}, bytes {start} to {stop}", read_text(path, start, stop))


def _cut_near(path: Path, position: int, reach: int) -> int:
    """Return the last line end in the `reach` bytes before `position`, or else the start of the character
    there.

    `reach` is half of the smallest split, so a long line can't empty a split.
    """
    start = max(0, position - min(reach, BLOCK_BYTES))
    with open_file(path) as file:
        file.seek(start)
        before = file.read(position - start)
        line_end = before.rfind(b"\n") + 1
        if line_end:
            return start + line_end
        after = file.read(4)
    return position + next((i for i, byte in enumerate(after) if not 0x80 <= byte < 0xC0), len(after))


def _split_folder(folder: TextFolder, fractions: Fractions) -> Iterator[tuple[SplitName, Document]]:
    groups = [list(group) for _, group in groupby(sorted(folder.texts, key=_file_hash), key=_file_hash)]
    if len(groups) <= len(fractions):  # too few files for every split: each file is cut by position
        for text in folder.texts:
            yield from _split_file(text.path, fractions)
        return
    splits = assign_splits(groups, fractions)
    for text in folder.texts:
        yield splits.get(text.sha256, "train"), Document(str(text.path), read_text(text.path))


def assign_splits(groups: Sequence[list[FileContent]], fractions: Fractions) -> dict[str, SplitName]:
    """Map the sha256 of each held-out file to its split. `groups` are groups of equal files, ordered by hash.

    A group is added to a split if that brings the split nearer to its fraction of all characters. Every
    split, including `train`, has at least one group.
    """
    sizes = {group[0].sha256: sum(text.characters for text in group) for group in groups}
    total, splits = sum(sizes.values()), {}
    for index, (split, fraction) in enumerate(fractions.items()):
        missing, max_groups = fraction * total, len(sizes) - (len(fractions) - index)
        chosen: list[str] = []
        for sha256, size in sizes.items():
            if len(chosen) < max_groups and size < 2 * missing:
                chosen.append(sha256)
                missing -= size
        chosen = chosen or [min(sizes, key=lambda sha256: (sizes[sha256], sha256))]
        for sha256 in chosen:
            del sizes[sha256]
            splits[sha256] = split
    return splits


def _file_hash(text: FileContent) -> str:
    return text.sha256
