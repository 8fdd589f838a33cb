"""`foveal inspect WHAT [VIEW]`: look inside a run, or a model before its training."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from foveal.core.errors import UserError
from foveal.core.runtime import resolve_device
from foveal.core.signals import SignalHandler
from foveal.inspection.activations.view import show_activations
from foveal.inspection.confusion.view import show_confusion
from foveal.inspection.filmstrip.view import show_filmstrip
from foveal.inspection.filters.view import show_filters
from foveal.inspection.neighbors.compute import DistanceMeasure
from foveal.inspection.neighbors.view import show_neighbors
from foveal.inspection.units.view import show_units
from foveal.tasks.glimpses.view import show_glimpses
from foveal.tasks.navigation.view import show_navigation
from foveal.tasks.session import load

InspectionView = Literal[
    "activations", "filters", "units", "confusion", "neighbours", "glimpses", "filmstrip", "walks"
]
VIEW_OPTIONS: dict[InspectionView, tuple[str, ...]] = {
    "activations": ("data", "initialization"),
    "filters": (),
    "units": ("data", "layer"),
    "confusion": ("data",),
    "neighbours": ("data", "query", "nearest", "measure"),
    "glimpses": ("query",),
    "filmstrip": ("query",),
    "walks": ("query",),
}
"""What may be asked of each view, beside a picture."""
DEFAULT_NEIGHBORS = 5


def inspect(
    run_or_model: str,
    view: InspectionView = "activations",
    /,
    *settings: str,
    data: str | None = None,
    initialization: str | None = None,
    query: str | None = None,
    nearest: int | None = None,
    measure: DistanceMeasure | None = None,
    layer: str | None = None,
    out: Path | None = None,
    device: str = "auto",
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Look inside WHAT: a run, a preset or a network for images by its name.

    Views: `activations`, how large what comes out of each layer is, saturated and dead shares; `filters`,
    what a run's first layer looks for in pictures; `units`, what moves those of a deeper one; `confusion`,
    which classes it takes for which; `neighbours`, the images nearest to a picture by a run's features and by
    pixels; `glimpses`, where a run of that task looked in an image; `filmstrip`, what a run says of the
    frames of clips; `walks`, which way a run goes on maps.

    Parameters
    ----------
    what
        A run folder; or, before any training, a preset, a TOML file, or a network such as mlp-10.
    view
        What to look at.
    settings
        Of a model without a run: key.sub=value, such as model.encoder.network_activation=tanh.
    data
        Other data than a run's held-out part; for a model without a run, in place of random images.
    initialization
        First weights to compare: 0.01,0.05,xavier,kaiming or some of them.
    query
        Of neighbours and glimpses: a picture, a folder or zip of them; the run's held-out images if not
        given, of neighbours with the share whose nearest have their label. Of a filmstrip: clips. Of walks:
        maps.
    nearest
        How many neighbours, 5 if not given; they are looked for among the run's training images, or those of
        --data.
    measure
        Of the distance between features of neighbours; cosine if not given.
    layer
        Of units: its name, such as encoder.blocks.4; the block in the middle if not given.
    out
        Draw it into this .png.
    device
        cpu, cuda, or auto.
    json
        Print one JSON object on standard output.
    """
    asked: dict[str, object] = {"data": data, "initialization": initialization, "layer": layer}
    asked |= {"query": query, "nearest": nearest, "measure": measure}
    with SignalHandler():
        _check_view_options(view, settings, asked)
        where = resolve_device(device)
        if view == "activations":
            show_activations(run_or_model, settings, data, initialization, out, where, json)
            return
        run = load(run_or_model, where)
        match view:
            case "filters":
                show_filters(run, out, json)
            case "units":
                show_units(run, layer, data, out, json)
            case "confusion":
                show_confusion(run, data, out, json)
            case "neighbours":
                k = DEFAULT_NEIGHBORS if nearest is None else nearest
                show_neighbors(run, query, data, k, measure or "cosine", out, json)
            case "glimpses":
                show_glimpses(run, query, out, json)
            case "filmstrip":
                show_filmstrip(run, query, out, json)
            case "walks":
                show_navigation(run, query, out, json)


def _check_view_options(view: InspectionView, settings: Sequence[str], options: Mapping[str, object]) -> None:
    if view != "activations" and settings:
        raise UserError(f"{settings[0]}: the view {view} is of a run, with its settings; leave it out")
    for name, value in options.items():
        if value is not None and name not in VIEW_OPTIONS[view]:
            raise UserError(f"--{name}: the view {view} has no use for it; leave it out")
