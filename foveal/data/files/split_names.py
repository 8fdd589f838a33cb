"""The splits that names of folders, files and arrays stand for: `Training`, `x_val`, `news-test.jsonl`."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from foveal.core.errors import UserError
from foveal.data.core.hash_split import SPLITS, SplitName

SPLIT_WORDS: dict[str, SplitName] = {
    "train": "train",
    "training": "train",
    "trainset": "train",
    "valid": "valid",
    "val": "valid",
    "validation": "valid",
    "valset": "valid",
    "dev": "valid",
    "devel": "valid",
    "development": "valid",
    "testa": "valid",
    "test": "test",
    "testb": "test",
    "testing": "test",
    "testset": "test",
    "eval": "test",
    "evaluation": "test",
}
"""Maps words in names to splits."""
UNLABELED_WORDS = {"unlabeled", "unlabelled", "unsup", "unsupervised"}
"""Words in names of files and folders that are in no split."""
SIMILAR_WORDS = {"tr", "trn", "te", "tst", "ts", "holdout", "heldout"}
"""Words that may stand for a split."""
DOCUMENTS = {"readme", "license", "licence", "copying", "notice", "citation", "changelog", "datasheet"}
"""Names, without suffix, of files about data."""
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
MAX_NAMES_SHOWN = 3
"""Names that a message lists."""


class SplitNames(NamedTuple):
    """The names of the splits' folders or files. Several files of a split are shards."""

    splits: dict[SplitName, list[str]]
    unused: list[str]
    """Names that are in no split."""


def split_of_name(name: str) -> SplitName | None:
    """Return the split that a word of `name` stands for; None if there is no such word, or several differ."""
    splits = {SPLIT_WORDS[word] for word in _words(name) if word in SPLIT_WORDS}
    return splits.pop() if len(splits) == 1 else None


def is_unlabeled_name(name: str) -> bool:
    """Return whether the name says that there are no labels inside."""
    return not UNLABELED_WORDS.isdisjoint(_words(name))


def is_split_like(name: str) -> bool:
    """Return whether the name is that of a split, of unlabeled data, or an abbreviation that may be one."""
    words = {*_words(name)}
    return (
        split_of_name(name) is not None
        or is_unlabeled_name(name)
        or 0 < len(words) == len(words & SIMILAR_WORDS)
    )


def is_document(name: str) -> bool:
    """Return whether a file is about the data, such as README.md and LICENSE."""
    return name.rpartition("/")[2].split(".")[0].lower() in DOCUMENTS


def group_by_split(where: object, names: Iterable[str]) -> SplitNames:
    """Return the names by split, in the order of SPLITS, and the names that are in no split.

    Raises: UserError: several names are the same split, and are not shards such as `train-1.csv`.
    """
    groups: dict[SplitName | None, list[str]] = {}
    for name in names:
        split = None if is_unlabeled_name(name) else split_of_name(name)
        groups.setdefault(split, []).append(name)
    splits = {split: groups[split] for split in SPLITS if split in groups}
    for same in splits.values():
        if not are_shards(same):
            raise UserError(f"{where}: {', '.join(same)} are for the same split; keep one for each split")
    return SplitNames(splits, groups.get(None, []))


def are_shards(names: Sequence[str]) -> bool:
    """Return whether the names differ only in numbers, such as part-0001.csv and part-0002.csv."""
    return len({re.sub(r"\d+", "0", name) for name in names}) <= 1


def list_names(names: Sequence[str]) -> str:
    """Return the first names for a message, and the number of others."""
    more = f" and {len(names) - MAX_NAMES_SHOWN:,} more" if len(names) > MAX_NAMES_SHOWN else ""
    return ", ".join(names[:MAX_NAMES_SHOWN]) + more


def _words(name: str) -> list[str]:
    return [word.lower() for word in WORD.findall(name)]
