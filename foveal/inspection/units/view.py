"""The view `units` of a run: what the units of a deeper layer respond to."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.progress import every_batch, unwatched
from foveal.data.core.split_data import evenly
from foveal.data.images.image_examples import Pictures
from foveal.encoders.image import ImageEncoder
from foveal.inspection.filters.compute import filters_of
from foveal.inspection.neighbors.view import centred
from foveal.inspection.units.compute import CAVEAT, Response, Signals, alike, maps_of, signals, strongest
from foveal.inspection.units.plot import Patch, draw
from foveal.metrics.report import aligned
from foveal.store.durable import replace_file
from foveal.tasks.evaluation_data import held_out
from foveal.tasks.image_classification import ImageKind
from foveal.tasks.session import Loaded, kind_of
from foveal.training.protocols import Batches
from foveal.ui.console import OUTPUT, check_picture, facts_table, result_line
from foveal.ui.progress_bar import Meter

UNITS, STRONGEST = 8, 5
"""So many units of a layer are shown, and of each so many images."""


def show_units(loaded: Loaded, layer: str | None, data: str | None, out: Path | None, json: bool) -> None:
    """Print, and draw into the PNG `out`, which held-out images, or images of `data`, move some units of a
    `layer` most; of the block in the middle if none is named.

    UserError for a run of no convolutions, and for what is no layer of maps.
    """
    path, kind, model = loaded.run.path, kind_of(loaded.config), loaded.model
    image, encoder = loaded.config.data.image, getattr(model, "encoder", None)
    learned = filters_of(model, image.channels, image.size) is not None
    if not (isinstance(kind, ImageKind) and isinstance(encoder, ImageEncoder) and encoder.blocks and learned):
        raise UserError(f"{path}: units are shown of networks with convolutions that were trained for images")
    check_picture(out)
    name = layer or f"encoder.blocks.{len(encoder.blocks) // 2}"
    part, split, _ = held_out(loaded, data, "with --data")
    order = kind.once(centred(loaded.config), part.examples)
    count = _units_of(loaded, name, order.batch(0, 0).columns["source"][:1])
    units = evenly(count, UNITS)
    with Meter("images seen") as watch:
        found = strongest(model, name, units, order, STRONGEST, watch)
    responses = [one for some in found for one in some]
    chosen = part.examples.some([one.row for one in responses])
    images = _images(kind.once(centred(loaded.config), chosen)).to(_device(loaded))
    asked = [unit for unit, some in zip(units, found, strict=True) for _ in some]
    drawn = signals(model, name, images, asked, [one.place for one in responses])
    if out is not None:
        patches = _patches(responses, drawn, part.examples)
        rows = [
            (f"unit {unit}", [next(patches) for _ in some]) for unit, some in zip(units, found, strict=True)
        ]
        replace_file(out, draw(rows, f"{name} of {path}, {split} images"))
    if json:
        told = [
            {"unit": unit, "source": part.sources[one.row], "label": part.answers[one.row]}
            | {"value": one.value, "window": window._asdict()}
            for unit, one, window in zip(asked, responses, drawn.windows, strict=True)
        ]
        facts = {"run": str(path), "split": split, "layer": name, "units": count, "control": alike(drawn)}
        result_line(facts | {"responses": told} | ({} if out is None else {"picture": str(out)}))
        return
    _tell(name, count, units, found, part.answers, alike(drawn), out)


def _units_of(loaded: Loaded, layer: str, image: Tensor) -> int:
    """How many a layer has, by a look at one image."""
    names = [f"encoder.blocks.{number}" for number in range(len(loaded.model.encoder.blocks))]
    if layer not in dict(loaded.model.named_modules()):
        raise UserError(
            f"--layer {layer}: {loaded.run.path} has no such layer; its blocks are {', '.join(names)}"
        )
    try:
        with torch.inference_mode():
            return maps_of(loaded.model, layer, image.to(_device(loaded))).shape[1]
    except ValueError as error:
        raise UserError(f"--layer {error}; choose one of {', '.join(names)}") from None


def _device(loaded: Loaded) -> torch.device:
    device: torch.device = next(loaded.model.parameters()).device
    return device


def _images(order: Batches) -> Tensor:
    """As the model is fed them, row by row."""
    found: dict[int, Tensor] = {}
    for batch in every_batch(order, unwatched):
        found |= dict(zip(batch.rows.tolist(), batch.columns["source"], strict=True))
    return torch.stack([found[row] for row in sorted(found)])


def _patches(responses: Sequence[Response], drawn: Signals, examples: Pictures) -> Any:
    for one, signal, control, window in zip(responses, *drawn, strict=True):
        rows, columns = slice(window.top, window.bottom), slice(window.left, window.right)
        pixels = examples.centre(one.row)[rows, columns]
        yield Patch(pixels, signal[:, rows, columns].numpy(), control[:, rows, columns].numpy())


def _tell(
    layer: str,
    count: int,
    units: Sequence[int],
    found: Sequence[Sequence[Response]],
    labels: Sequence[str],
    control: float | None,
    out: Path | None,
) -> None:
    head = ["unit", "most", "", "images that move it most"]
    rows = [
        [
            *(str(unit), f"{some[0].value:.3g}", f"to {some[-1].value:.3g}"),
            ", ".join(labels[one.row] for one in some),
        ]
        for unit, some in zip(units, found, strict=True)
    ]
    OUTPUT.print(aligned([head, *rows]), soft_wrap=True, markup=False)
    facts = [("layer", f"{layer}, {len(units)} of its {count:,} units")]
    if control is not None:
        facts.append(("control", f"correlation {control:.2f} with what a layer of random weights draws"))
    facts.append(("caveat", CAVEAT))
    facts_table([*facts, *([] if out is None else [("picture", str(out))])], OUTPUT)
