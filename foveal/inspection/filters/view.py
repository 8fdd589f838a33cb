"""The view `filters` of a run: what its first layer looks for in pictures."""

from pathlib import Path

import numpy as np

from foveal.core.errors import UserError
from foveal.inspection.filters.compute import CAVEAT, IDLE, Filters, filters_of
from foveal.inspection.filters.plot import draw, scale_of, shown
from foveal.objectives.classification import ClassifyTask
from foveal.store.durable import replace_file
from foveal.tasks.session import Loaded
from foveal.ui.console import OUTPUT, check_picture, facts_table, result_line

PICTURES = ("image", "patches", "frames", "volume")
"""Encoders that are given pixels."""


def show_filters(loaded: Loaded, out: Path | None, json: bool) -> None:
    """Print how many there are and how large, and draw them into the PNG `out`.

    UserError for a run that sees no pictures, or through features that are not learned.
    """
    path, config, image = loaded.run.path, loaded.config, loaded.config.data.image
    if config.model.encoder.kind not in PICTURES:
        raise UserError(f"{path}: filters are of an encoder of pictures, and this run has none")
    check_picture(out)
    found = filters_of(loaded.model, image.channels, image.size)
    if found is None:
        network = config.model.encoder.network
        raise UserError(
            f"{path}: no layer of it meets pixels: model.encoder.network={network} is not learned"
        )
    labels = loaded.task.labels if _of_classes(loaded, found) else None
    if out is not None:
        grey = f"grey is 0, white {scale_of(found):.2g}, black {-scale_of(found):.2g}"
        replace_file(out, draw(found, labels, f"{found.layer}: {grey}"))
    if json:
        classes = {} if labels is None else {"labels": list(labels)}
        picture = {} if out is None else {"picture": str(out)}
        facts = {"run": str(path), "layer": found.layer, "shape": list(found.weights.shape)}
        norms = {"scale": scale_of(found), "norms": found.norms.tolist(), "idle": found.idle}
        result_line(facts | norms | classes | picture)
        return
    _tell(found, labels is not None, out)


def _of_classes(loaded: Loaded, found: Filters) -> bool:
    """Whether each is all that there is of a class."""
    task = loaded.task
    return isinstance(task, ClassifyTask) and found.layer == "head.projection"


def _tell(found: Filters, classes: bool, out: Path | None) -> None:
    N, C, T, H, W = found.weights.shape
    sides = f"{C} x {H} x {W}" if T == 1 else f"{C} x {T} x {H} x {W}"
    norms = found.norms
    rows = [
        ("layer", found.layer),
        ("templates" if classes else "filters", f"{N:,} of {sides}"),
        (
            "norms",
            f"{norms.max():.3g} at most, {np.median(norms):.3g} in the middle, {norms.min():.3g} at least",
        ),
        ("idle", f"{found.idle:,}, of a norm below {100 * IDLE:.0f} % of the largest"),
        ("scale", f"grey is 0, white {scale_of(found):.3g}, black {-scale_of(found):.3g}"),
        ("caveat", CAVEAT),
    ]
    if out is not None:
        drawn = len(shown(found, [""] * N if classes else None))
        some = "" if drawn == N else f" ({drawn} of them, those of the largest norms)"
        rows.append(("picture", f"{out}{some}"))
    facts_table(rows, OUTPUT)
