"""What data sets are made of files that others have published: texts, and rows of tables."""

import csv
import io
import re
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from foveal.core.errors import UserError
from foveal.data.core.hash_split import split_of_text
from foveal.data.datasets.synthetic_strings import PairsBySplit
from foveal.data.files.archives import NamedContents

MARKDOWN_MARKS = re.compile(r"[*_\\]| +$", re.MULTILINE)
"""Markdown's, and the spaces at line ends that stand for line breaks."""


def shakespeare_plays(files: NamedContents) -> Iterator[tuple[str, bytes]]:
    """Texts in Markdown, cleaned of its marks."""
    for name, content in files:
        yield f"{PurePosixPath(name).stem}.txt", MARKDOWN_MARKS.sub("", content.decode()).encode()


def standard_library() -> Iterator[tuple[str, bytes]]:
    """The source files of the running Python. Errors: UserError if it has none."""
    library = Path(sysconfig.get_path("stdlib"))
    found = False
    for path in sorted(library.rglob("*.py")):
        name = path.relative_to(library)
        if {"site-packages", "dist-packages", "__pycache__"} & set(name.parts):
            continue
        try:
            text = path.read_bytes()
            text.decode()
        except (OSError, UnicodeDecodeError):
            continue
        found = True
        yield str(name), text
    if not found:
        raise UserError(
            f"python-source: this Python has no source files in {library}; give a folder of your own"
        )


def cmudict_pairs(files: NamedContents) -> PairsBySplit:
    """Spelling and phonemes of the CMU dictionary, lines such as `read(2) R IY1 D # note`.

    A word's part is that of the hash of its spelling, so all its pronunciations are in one.
    """
    parts: PairsBySplit = {"train": [], "valid": [], "test": []}
    for _, content in files:
        for line in content.decode().splitlines():
            word, _, sounds = line.partition("#")[0].strip().partition(" ")
            spelling = re.sub(r"\(\d+\)$", "", word)
            if sounds:
                parts[split_of_text(spelling, {"valid": 0.05, "test": 0.1})].append(
                    (spelling, sounds.strip())
                )
    return parts


def movie_reviews(files: NamedContents) -> PairsBySplit:
    """Texts and their labels, negative or positive, of a table with columns `text`, `label` and `source`.

    Repeated texts are left out. Of each label in each source every tenth is for
    the test, and every twentieth for validation.
    """
    parts: PairsBySplit = {"train": [], "valid": [], "test": []}
    seen: set[str] = set()
    counts: Counter[tuple[str, str]] = Counter()
    for _, content in files:
        for row in csv.DictReader(io.StringIO(content.decode(), newline="")):
            text = " ".join(row["text"].replace("<br />", " ").split())
            if text in seen:
                continue
            seen.add(text)
            counts[row["source"], row["label"]] += 1
            number = counts[row["source"], row["label"]]
            part = "test" if number % 10 == 0 else "valid" if number % 20 == 5 else "train"
            parts[part].append((text, ("negative", "positive")[int(row["label"])]))
    return parts


def uea_series(files: NamedContents) -> Iterator[tuple[str, bytes]]:
    """`NAME_TRAIN.ts` and `NAME_TEST.ts` of the UEA archive, as the parts that they are."""
    for name, content in files:
        part = PurePosixPath(name).stem.rpartition("_")[2].lower()
        yield f"{part}.ts", content
