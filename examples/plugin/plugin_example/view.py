"""A view: the shares of the labels, as they are and as a run predicts them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import foveal
from foveal.inspection.panels import Axis, Bars, NamedArray
from foveal.inspection.payload import Payload
from foveal.inspection.view import View


@dataclass(frozen=True)
class SharesOptions:
    data: str | None = None
    """Other data than the run's held-out part."""


@foveal.register_view("label-shares")
class LabelShares(View[SharesOptions]):
    summary = "The shares of the labels, as they are and as a run predicts them."
    Options = SharesOptions

    def fits(self, run: Any) -> str:
        return "" if run.task.has_classes else "this run predicts no labels"

    def compute(self, run: Any, options: SharesOptions, log: Any, progress: Any) -> Payload:
        rows, split, _ = run.held_out(options.data, "with --data", log)
        outputs = run.task.predicted_labels(rows.examples, progress)
        labels = tuple(run.task.labels)
        counts = [[list(each).count(label) for label in labels] for each in (rows.references, outputs)]
        shares = np.array(counts) / max(1, len(outputs))
        array = NamedArray(shares, (Axis("", ("correct", "predicted")), Axis("label", labels)), "share")
        (largest,) = shares[1:].argmax(1)
        facts = (("most predicted", f"{labels[largest]}: {100 * shares[1, largest]:.1f} %"),)
        caveat = "equal shares do not say that the same rows have the label"
        title = f"Labels of the {split} split, blue as they are, red as predicted"
        return Payload("label-shares", str(run.run.path), title, (Bars("", array),), caveat, "exact", facts)
