"""Train, validation and test parts of a corpus, cut without leakage and by content alone.

A text file is cut by position (train first, then validation, then test), so that no held-out line stands
between training lines. A folder's files and a table's rows stay whole and go to a part by the hash of
their content: equal ones fall on the same side, and neither names nor order matter.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from foveal.data.core.hash_split import Fractions, SplitName, check_fractions, split_of_text
from foveal.data.files.utf8 import BLOCK_BYTES, open_file, read_text
from foveal.data.text.corpus import CorpusSource, Document, FileContent, TextFile, TextFolder, TextTable


def split_documents(source: CorpusSource, fractions: Fractions) -> Iterator[tuple[SplitName, Document]]:
    """Each document with its part. Parts are disjoint and together the whole source."""
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
    """Cut a file where the shares say, at the line end before, or inside a line that is too long."""
    size = path.stat().st_size
    ends, left = [], 1.0
    for share in fractions.values():
        left -= share
    reach = int(size * min(fractions.values()) / 2)
    for share in fractions.values():
        ends.append(_cut_near(path, int(size * left), reach))
        left += share
    for part, start, stop in zip(("train", *fractions), (0, *ends), (*ends, size), strict=True):
        yield part, Document(f"{path}, bytes {start} to {stop}", read_text(path, start, stop))


def _cut_near(path: Path, position: int, reach: int) -> int:
    """The last line end in the `reach` bytes before `position`, else the start of a character there.

    `reach` is half of the smallest part, so no part is lost to a long line.
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
    alike = [list(group) for _, group in groupby(sorted(folder.texts, key=_file_hash), key=_file_hash)]
    if len(alike) <= len(fractions):  # too few files for every part to have one: each is cut by position
        for text in folder.texts:
            yield from _split_file(text.path, fractions)
        return
    parts = assign_splits(alike, fractions)
    for text in folder.texts:
        yield parts.get(text.sha256, "train"), Document(str(text.path), read_text(text.path))


def assign_splits(groups: Sequence[list[FileContent]], fractions: Fractions) -> dict[str, SplitName]:
    """The held-out files: sha256 -> part. `groups` are groups of equal files, in the order of their hashes.

    A group is taken if that brings the part nearer to its share of all characters; every part, `train`
    too, gets at least one group.
    """
    sizes = {group[0].sha256: sum(text.characters for text in group) for group in groups}
    total, parts = sum(sizes.values()), {}
    for number, (part, share) in enumerate(fractions.items()):
        wanted, spare = share * total, len(sizes) - (len(fractions) - number)
        taken: list[str] = []
        for content, size in sizes.items():
            if len(taken) < spare and size < 2 * wanted:
                taken.append(content)
                wanted -= size
        taken = taken or [min(sizes, key=lambda content: (sizes[content], content))]
        for content in taken:
            del sizes[content]
            parts[content] = part
    return parts


def _file_hash(text: FileContent) -> str:
    return text.sha256
