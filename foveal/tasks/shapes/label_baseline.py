"""Baselines of classifiers: the most frequent class, and a linear classifier of simple features."""

from typing import Any

import numpy as np
import torch

from foveal.core.runtime import derived_seed
from foveal.data.core.shuffle import permute_indices
from foveal.data.pairs.source import Source
from foveal.ops.ridge import ridge_classifier, ridge_memory, ridge_seconds

MAX_BASELINE_ROWS = 5000
"""Training rows at most that a linear baseline is fitted to."""


MAX_TARGETS = 5_000_000
"""Rows times classes at most that a linear baseline is fitted to."""


def has_too_many_classes(train: Any, classes: int) -> bool:
    """Return whether a linear baseline would take very much memory and time."""
    return min(len(train), MAX_BASELINE_ROWS) * classes > MAX_TARGETS


def fitted_rows(train: Any, seed: int) -> list[int]:
    """Return the training rows that a baseline is fitted to: `MAX_BASELINE_ROWS` at most, at random."""
    count = min(len(train), MAX_BASELINE_ROWS)
    rows: list[int] = permute_indices(np.arange(count), len(train), derived_seed(seed, "baseline")).tolist()
    return rows


def majority_ids(train: Any, held_out: Any) -> list[int]:
    """Return the most frequent class of the training rows for each held-out row."""
    counts = np.bincount(train.examples.columns["label"])
    return [int(counts.argmax())] * len(held_out)


def linear_ids(source: Source[Any], train: Any, held_out: Any, classes: int, seed: int) -> list[int]:
    """Return the classes that a ridge classifier of simple features predicts for the held-out rows.

    The result is empty if the source has no simple features, the training rows have a single class, or there
    are too many classes.
    """
    if has_too_many_classes(train, classes):
        return []
    labels = train.examples.columns["label"]
    rows = fitted_rows(train, seed)
    if len(np.unique(labels[rows])) < 2:
        return []
    features = source.simple_features(train.examples.subset(rows), held_out.examples)
    if features is None:
        return []
    fit = ridge_classifier(features[0], torch.from_numpy(labels[rows].astype(np.int64)), classes)
    ids: list[int] = (features[1] @ fit.weight.T + fit.bias).argmax(1).tolist()
    return ids


def linear_memory(source: Source[Any], train: Any, held_out_rows: int, classes: int) -> int:
    """Return the bytes that `linear_ids` needs for so many rows."""
    if has_too_many_classes(train, classes):
        return 0
    rows, width = min(len(train), MAX_BASELINE_ROWS), source.max_simple_features
    return ridge_memory(rows, width, classes) + 4 * width * (rows + held_out_rows)


def linear_seconds(source: Source[Any], train: Any, classes: int) -> float:
    """Return about how many seconds `linear_ids` takes."""
    rows, width = min(len(train), MAX_BASELINE_ROWS), source.max_simple_features
    return ridge_seconds(rows, width) if width and not has_too_many_classes(train, classes) else 0.0
