"""`foveal inspect WHAT [VIEW]`: look inside a run, or a model before its training."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from foveal.build import load
from foveal.commands.activations import show_activations
from foveal.commands.confusion import show_confusion
from foveal.commands.filmstrip import show_filmstrip
from foveal.commands.glimpses import show_glimpses
from foveal.commands.neighbours import show_neighbours
from foveal.commands.walks import show_walks
from foveal.core.errors import UserError
from foveal.core.runtime import choose_device
from foveal.inspection.neighbours import Measure
from foveal.training.interrupt import Signals


def inspect(
    what: str,
    view: Literal["activations", "confusion", "neighbours", "glimpses", "filmstrip", "walks"] = "activations",
    /,
    *settings: str,
    data: str | None = None,
    initialization: str | None = None,
    query: str | None = None,
    nearest: int = 5,
    measure: Measure = "cosine",
    out: Path | None = None,
    device: str = "auto",
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Look inside WHAT: a run, a preset or a network for images by its name.

    Views: `activations`, how large what comes out of each layer is, saturated and dead shares; `confusion`,
    which classes a run takes for which; `neighbours`, the images nearest to a picture by a run's features and
    by pixels; `glimpses`, where a run of that task looked in an image; `filmstrip`, what a run says of the
    frames of clips; `walks`, which way a run goes on maps.

    Parameters
    ----------
    what
        A run folder; or, before any training, a preset, a TOML file, or a network such as mlp-10.
    view
        What to look at.
    settings
        Of a model without a run: key.sub=value, such as model.encoder.nonlinearity=tanh.
    data
        Other data than a run's held-out part; for a model without a run, in place of random images.
    initialization
        First weights to compare: 0.01,0.05,xavier,kaiming or some of them.
    query
        Of neighbours and glimpses: a picture, a folder or zip of them; the run's held-out images if not
        given, of neighbours with the share whose nearest have their label. Of a filmstrip: clips. Of walks:
        maps.
    nearest
        How many neighbours; they are looked for among the run's training images, or those of --data.
    measure
        Of the distance between features.
    out
        Draw it into this .png.
    device
        cpu, cuda, or auto.
    json
        Print one JSON object on standard output.
    """
    with Signals():
        if view != "activations" and settings:
            raise UserError(f"{settings[0]}: the view {view} is of a run, with its settings; leave it out")
        if view == "confusion":
            show_confusion(load(what, choose_device(device)), data, out, json)
            return
        if view == "glimpses":
            show_glimpses(load(what, choose_device(device)), query, out, json)
            return
        if view == "filmstrip":
            show_filmstrip(load(what, choose_device(device)), query, out, json)
            return
        if view == "walks":
            show_walks(load(what, choose_device(device)), query, out, json)
            return
        if view == "neighbours":
            run = load(what, choose_device(device))
            show_neighbours(run, query, data, nearest, measure, out, json)
            return
        show_activations(what, settings, data, initialization, out, choose_device(device), json)
