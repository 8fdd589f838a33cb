"""Files that have the name of a file beside them, but for the suffix: `1.txt` beside `1.png`."""

import os
from collections.abc import Iterator, Sequence

SIDECAR_SUFFIXES = (".txt", ".json", ".xml")
"""Suffixes of files that may describe the file beside them."""
TEXT_SUFFIX = ".txt"


def without_sidecars(names: Sequence[str]) -> list[str]:
    """Return the names of the files that describe no file beside them."""
    stems = {os.path.splitext(name)[0] for name in names if not _may_describe(name)}
    return [name for name in names if not _may_describe(name) or os.path.splitext(name)[0] not in stems]


def sidecar_suffixes(names: Sequence[str]) -> list[str]:
    """Return the suffixes of the files beside most other files."""
    described = without_sidecars(names)
    beside = {*names} - {*described}
    counts = {suffix: sum(name.lower().endswith(suffix) for name in beside) for suffix in SIDECAR_SUFFIXES}
    return [suffix for suffix, count in counts.items() if 2 * count > len(described)]


def pairs_with_texts(names: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each name, and the name of the text beside that file; None if there is no text."""
    texts = {os.path.splitext(name)[0]: name for name in names if name.lower().endswith(TEXT_SUFFIX)}
    for name in without_sidecars(names):
        yield name, texts.get(os.path.splitext(name)[0])


def _may_describe(name: str) -> bool:
    return name.lower().endswith(SIDECAR_SUFFIXES)
