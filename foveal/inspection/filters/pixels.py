"""Filters as images, all on the same scale: gray is 0."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import UInt8

from foveal.inspection.filters.compute import Filters

MAX_FILTERS = 144
"""Most filters that are drawn, those of the largest norms."""
CLIPPED_FRACTION = 0.001
"""The share of the weights that are beyond the scale: black or white."""


def weight_scale(filters: Filters) -> float:
    """Return the weight that is drawn white; its negative is drawn black. Return 1 if all weights are 0."""
    return float(np.quantile(np.abs(filters.weights), 1 - CLIPPED_FRACTION)) or 1.0


def select_filters(filters: Filters, labels: Sequence[str] | None) -> list[int]:
    """Return the indices of the filters to draw: class templates in the order of the classes, other filters
    by norm."""
    if labels is not None:
        return [*range(min(MAX_FILTERS, len(labels)))]
    return np.argsort(-filters.norms, kind="stable")[:MAX_FILTERS].tolist()


def filter_images(filters: Filters) -> UInt8[np.ndarray, "N H W 3"]:
    """Return each filter as RGB pixels, with its frames side by side.

    A filter that does not have three channels is gray, the mean over its channels.
    """
    levels = np.clip(0.5 + 0.5 * filters.weights / weight_scale(filters), 0, 1)
    if levels.shape[1] != 3:
        levels = levels.mean(1, keepdims=True).repeat(3, 1)
    N, _, T, H, W = levels.shape
    images = levels.transpose(0, 3, 2, 4, 1).reshape(N, H, T * W, 3)
    pixels: UInt8[np.ndarray, "N H W 3"] = np.round(255 * images).astype(np.uint8)
    return pixels
