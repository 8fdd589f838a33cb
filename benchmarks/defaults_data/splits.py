"""Splits by content, and the files that hold the rows of a split."""

import csv
import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

Row = TypeVar("Row")
LabeledFile = tuple[str, str, bytes]
"""A label, the name of a file, and its content."""
TEST_SHARE = 0.25
SPLITS = ("train", "test")


def content_hash(content: str | bytes) -> str:
    """Return the hash that orders rows. The order depends on the content alone."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def hold_out(
    rows: Iterable[Row],
    content: Callable[[Row], str | bytes],
    label: Callable[[Row], str],
    most: int | None = None,
) -> dict[str, list[Row]]:
    """Return the rows of each split: of each label, a quarter in the order of their hashes is for the test.

    Of rows with equal content only the first is kept. `most` is the largest number of rows of a label.
    """
    by_label: dict[str, dict[str, Row]] = defaultdict(dict)
    seen: set[str] = set()
    for row in rows:
        digest = content_hash(content(row))
        if digest not in seen:
            seen.add(digest)
            by_label[label(row)][digest] = row
    splits: dict[str, list[Row]] = {split: [] for split in SPLITS}
    for _, hashed in sorted(by_label.items()):
        chosen = [hashed[digest] for digest in sorted(hashed)][:most]
        tests = round(TEST_SHARE * len(chosen))
        splits["test"] += chosen[:tests]
        splits["train"] += chosen[tests:]
    return {split: sorted(part, key=lambda row: content_hash(content(row))) for split, part in splits.items()}


def hold_out_texts(rows: Iterable[tuple[str, str]], folder: Path, most: int | None = None) -> None:
    """Write texts and their labels, of which a quarter is held out."""
    write_texts(hold_out(rows, lambda row: row[0], lambda row: row[1], most), folder)


def write_texts(splits: dict[str, list[tuple[str, str]]], folder: Path) -> None:
    """Write texts and their labels as `train.csv` and `test.csv`, with the columns text and label."""
    for split, rows in splits.items():
        with (folder / f"{split}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("text", "label"), *rows])


def hold_out_files(files: Iterable[LabeledFile], folder: Path, most: int | None = None) -> None:
    """Write files into `train/LABEL/NAME`, and the quarter that is held out into `test/LABEL/NAME`."""
    splits = hold_out(files, lambda row: row[2], lambda row: row[0], most)
    for split, rows in splits.items():
        for label, name, content in rows:
            path = folder / split / label / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def write_sentences(splits: dict[str, list[Sequence[tuple[str, str]]]], folder: Path) -> None:
    """Write sentences of words and tags as CoNLL-U, with the tags in the column of universal tags."""
    for split, sentences in splits.items():
        blocks = (
            "".join(f"{i}\t{word}\t_\t{tag}" + "\t_" * 6 + "\n" for i, (word, tag) in enumerate(sentence, 1))
            for sentence in sentences
        )
        (folder / f"{split}.conllu").write_text("\n".join(blocks) + "\n", encoding="utf-8")
