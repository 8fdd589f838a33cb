"""Who is taken for whom, as a picture: a row for each class, a column for each label that was given."""

import io

import numpy as np

from foveal.metrics.labels import ConfusionMatrix

MAX_CLASSES, MAX_CLASSES_WITH_COUNTS = 40, 20
"""Classes that have a row, of more those with most mistakes; and those few enough for their counts."""


def plot_confusion(confusion: ConfusionMatrix, title: str) -> bytes:
    """The PNG's content: dark is a large share of the row's class, and counts are written where they fit."""
    from matplotlib.figure import Figure

    chosen = confusion.most_mistaken(MAX_CLASSES)
    labels = [confusion.labels[number] for number in chosen]
    counts = confusion.counts[np.ix_(chosen, chosen)]
    shares = counts / np.maximum(confusion.counts[chosen].sum(1, keepdims=True), 1)
    size = 1.8 + 0.42 * len(chosen)
    figure = Figure(figsize=(max(4.5, size), max(4.0, size)), layout="constrained")
    axes = figure.subplots()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    if len(chosen) <= MAX_CLASSES_WITH_COUNTS:
        for row, column in np.argwhere(counts).tolist():
            colour = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, f"{counts[row, column]:,}", ha="center", va="center", size=7, color=colour)
    places = range(len(chosen))
    axes.set_xticks(places, labels, rotation=90, fontsize=8)
    axes.set_yticks(places, labels, fontsize=8)
    axes.set_ylabel("right")
    axes.set_xlabel("taken for")
    some = (
        "" if len(chosen) == len(confusion.labels) else f"; {len(chosen)} classes of {len(confusion.labels)}"
    )
    axes.set_title(f"{title}{some}", fontsize=9, loc="left")
    content = io.BytesIO()
    figure.savefig(content, dpi=130)
    return content.getvalue()
