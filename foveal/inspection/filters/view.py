"""The view `filters` of a run: what its first layer looks for in pictures."""

from pathlib import Path

import numpy as np

from foveal.core.errors import UserError
from foveal.inspection.filters.compute import CAVEAT, IDLE_NORM, Filters, first_layer_filters
from foveal.inspection.filters.plot import plot_filters, select_filters, weight_scale
from foveal.objectives.classification import ClassificationObjective
from foveal.store.durable import atomic_write
from foveal.tasks.session import Session
from foveal.ui.console import STDOUT, check_png_path, print_facts, print_json

IMAGE_ENCODERS = ("image", "patches", "frames", "conv3d")
"""Encoders that are given pixels."""


def show_filters(loaded: Session, out: Path | None, json: bool) -> None:
    """Print how many there are and how large, and draw them into the PNG `out`.

    UserError for a run that sees no pictures, or through features that are not learned.
    """
    path, config, image = loaded.run.path, loaded.config, loaded.config.data.image
    if config.model.encoder.kind not in IMAGE_ENCODERS:
        raise UserError(f"{path}: filters are of an encoder of pictures, and this run has none")
    check_png_path(out)
    found = first_layer_filters(loaded.model, image.channels, image.size)
    if found is None:
        network = config.model.encoder.network
        raise UserError(
            f"{path}: no layer of it meets pixels: model.encoder.network={network} is not learned"
        )
    labels = loaded.objective.labels if _are_class_templates(loaded, found) else None
    if out is not None:
        grey = f"grey is 0, white {weight_scale(found):.2g}, black {-weight_scale(found):.2g}"
        atomic_write(out, plot_filters(found, labels, f"{found.layer}: {grey}"))
    if json:
        classes = {} if labels is None else {"labels": list(labels)}
        picture = {} if out is None else {"picture": str(out)}
        facts = {"run": str(path), "layer": found.layer, "shape": list(found.weights.shape)}
        norms = {"scale": weight_scale(found), "norms": found.norms.tolist(), "idle": found.idle}
        print_json(facts | norms | classes | picture)
        return
    _print_result(found, labels is not None, out)


def _are_class_templates(loaded: Session, filters: Filters) -> bool:
    """Whether each is all that there is of a class."""
    return isinstance(loaded.objective, ClassificationObjective) and filters.layer == "head.projection"


def _print_result(filters: Filters, classes: bool, out: Path | None) -> None:
    N, C, T, H, W = filters.weights.shape
    sides = f"{C} x {H} x {W}" if T == 1 else f"{C} x {T} x {H} x {W}"
    norms = filters.norms
    rows = [
        ("layer", filters.layer),
        ("templates" if classes else "filters", f"{N:,} of {sides}"),
        (
            "norms",
            f"{norms.max():.3g} at most, {np.median(norms):.3g} in the middle, {norms.min():.3g} at least",
        ),
        ("idle", f"{filters.idle:,}, of a norm below {100 * IDLE_NORM:.0f} % of the largest"),
        ("scale", f"grey is 0, white {weight_scale(filters):.3g}, black {-weight_scale(filters):.3g}"),
        ("caveat", CAVEAT),
    ]
    if out is not None:
        drawn = len(select_filters(filters, [""] * N if classes else None))
        some = "" if drawn == N else f" ({drawn} of them, those of the largest norms)"
        rows.append(("picture", f"{out}{some}"))
    print_facts(rows, STDOUT)
