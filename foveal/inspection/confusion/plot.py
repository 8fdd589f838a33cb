"""A confusion matrix as a picture: a row for each class, a column for each predicted label."""

import numpy as np

from foveal.inspection.style import figure_png, new_figure, text_font
from foveal.metrics.labels import ConfusionMatrix

MAX_CLASSES, MAX_CLASSES_WITH_COUNTS = 40, 20
"""Most classes that are drawn, those with most mistakes; and most classes whose counts are written."""

COLOR_SCALE = 0.9
"""Inches beside the matrix."""


def plot_confusion(confusion: ConfusionMatrix, title: str) -> bytes:
    """Return the PNG. A dark cell is a large fraction of the row's class. Counts are written where
    they fit."""
    classes = confusion.most_mistaken(MAX_CLASSES)
    labels = [confusion.labels[number] for number in classes]
    counts = confusion.counts[np.ix_(classes, classes)]
    shares = counts / np.maximum(confusion.counts[classes].sum(1, keepdims=True), 1)
    size = 1.8 + 0.42 * len(classes)
    figure = new_figure(max(4.5, size) + COLOR_SCALE, max(4.0, size), "constrained")
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, ax=axes, label="share of the row", shrink=0.7)
    if len(classes) <= MAX_CLASSES_WITH_COUNTS:
        for row, column in np.argwhere(counts).tolist():
            color = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, f"{counts[row, column]:,}", ha="center", va="center", size=7, color=color)
    font = text_font(8.0)
    axes.set_xticks(range(len(classes)), labels, rotation=90, parse_math=False, fontproperties=font)
    axes.set_yticks(range(len(classes)), labels, parse_math=False, fontproperties=font)
    axes.set_ylabel("correct class")
    axes.set_xlabel("predicted class")
    count = len(confusion.labels)
    part = "" if len(classes) == count else f"; {len(classes)} classes of {count}"
    axes.set_title(f"{title}{part}", fontsize=9, loc="left")
    return figure_png(figure)
