"""How often each label occurs, and where."""

from collections.abc import Iterator

import numpy as np

from foveal.studies.data_check.checked_data import CheckedData
from foveal.studies.data_check.finding import MAX_ROWS, Finding

FEW_ROWS = 5
"""A class with fewer rows for training is hardly learned."""
IMBALANCE = 10
"""The largest class over the smallest, from which on classes are called out of balance."""


def check_classes(data: CheckedData) -> Iterator[Finding]:
    """Yield constant labels, classes out of balance, and classes that are rare or missing in train."""
    if not data.labels:
        return
    counts = class_counts(data)
    train = counts[0]
    if len(data.labels) == 1:
        yield Finding(
            "classes",
            "problem",
            f"all rows have the label {data.labels[0]!r}, so there is nothing to learn",
            "give rows of other labels, or name the right column (data.label=NAME)",
            data.count,
        )
        return
    missing = [label for label, count in zip(data.labels, train, strict=True) if not count]
    if missing:
        yield Finding(
            "classes",
            "problem",
            f"{_classes(len(missing))} only in held-out rows, so they are never trained",
            "add rows of them to the training data",
            len(missing),
            tuple(map(repr, missing[:MAX_ROWS])),
        )
    rare = [
        f"{label!r}: {count}" for label, count in zip(data.labels, train, strict=True) if 0 < count < FEW_ROWS
    ]
    if rare:
        yield Finding(
            "classes",
            "problem",
            f"{_classes(len(rare))} in fewer than {FEW_ROWS} training rows",
            "add rows of them, or join them with others",
            len(rare),
            tuple(rare[:MAX_ROWS]),
        )
    largest, smallest = int(train.argmax()), int(np.where(train > 0, train, train.max()).argmin())
    if train[largest] > IMBALANCE * train[smallest]:
        part = train[largest] / max(1, train.sum())
        yield Finding(
            "classes",
            "note",
            f"out of balance: {data.labels[largest]!r} has {train[largest]:,} training rows ({part:.1%}), "
            f"{data.labels[smallest]!r} has {train[smallest]:,}",
            f"always answering {data.labels[largest]!r} is right in {part:.1%}: look at macro F1, too",
            len(data.labels),
        )


def class_counts(data: CheckedData) -> "np.ndarray[tuple[int, int], np.dtype[np.int64]]":
    """Return the rows of each split (first axis) and label."""
    rows = [
        np.bincount(
            data.label_ids[(data.splits == number) & (data.label_ids >= 0)], minlength=len(data.labels)
        )
        for number in range(len(data.sizes))
    ]
    return np.stack(rows)


def _classes(count: int) -> str:
    return "a class is" if count == 1 else f"{count:,} classes are"
