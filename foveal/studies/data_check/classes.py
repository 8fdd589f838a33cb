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
    train, unit = class_counts(data)[0], data.label_unit
    if len(data.labels) == 1:
        yield Finding(
            "classes",
            "problem",
            f"all {unit}s have the label {data.labels[0]!r}, so there is nothing to learn",
            f"give rows of other labels{_column_hint(data)}",
            data.count,
        )
        return
    missing = [label for label, count in zip(data.labels, train, strict=True) if not count]
    if missing:
        yield Finding(
            "classes",
            "problem",
            f"{_classes(len(missing))} only in held-out rows, and so never trained",
            "add rows of them to the training data",
            len(missing),
            tuple(f"{label!r}: {data.first_of_label[label]}" for label in missing[:MAX_ROWS]),
        )
    rare = [
        f"{label!r}: {count}, the first in {data.first_of_label[label]}"
        for label, count in zip(data.labels, train, strict=True)
        if 0 < count < FEW_ROWS
    ]
    if rare:
        yield Finding(
            "classes",
            "problem",
            f"{_classes(len(rare))} in fewer than {FEW_ROWS} training {unit}s",
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
            f"out of balance: {data.labels[largest]!r} has {train[largest]:,} training {unit}s ({part:.1%}), "
            f"{data.labels[smallest]!r} has {train[smallest]:,}",
            f"always answering {data.labels[largest]!r} is right in {part:.1%}: look at macro F1, too",
            1,
            (f"{data.labels[smallest]!r}: the first in {data.first_of_label[data.labels[smallest]]}",),
        )


def class_counts(data: CheckedData) -> "np.ndarray[tuple[int, int], np.dtype[np.int64]]":
    """Return how often each split (first axis) has each label."""
    rows = [[counts[label] for label in data.labels] for counts in data.label_counts.values()]
    return np.array(rows, np.int64)


def _column_hint(data: CheckedData) -> str:
    """Name the setting for another column of labels, if there is one."""
    settings = data.data_format.target.settings
    return f", or name the right column ({settings[0]}=NAME)" if settings else ""


def _classes(count: int) -> str:
    return "a class is" if count == 1 else f"{count:,} classes are"
