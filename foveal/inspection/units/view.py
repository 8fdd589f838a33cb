"""The view `units` of a run: what the units of a deeper layer respond to."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.progress import iterate_batches, no_progress
from foveal.data.core.split_data import evenly_spaced
from foveal.data.images.image_examples import ImageExamples
from foveal.encoders.image import ImageEncoder
from foveal.inspection.filters.compute import first_layer_filters
from foveal.inspection.neighbors.view import with_center_crop
from foveal.inspection.units.compute import (
    CAVEAT,
    GuidedSignals,
    UnitResponse,
    feature_maps,
    guided_signals,
    mean_correlation,
    top_responses,
)
from foveal.inspection.units.plot import UnitPatch, plot_units
from foveal.metrics.report import format_table
from foveal.store.durable import atomic_write
from foveal.tasks.session import Session
from foveal.training.protocols import Batches
from foveal.ui.console import STDOUT, check_png_path, print_facts, print_json
from foveal.ui.progress_bar import ProgressBar

UNITS_SHOWN, IMAGES_PER_UNIT = 8, 5
"""So many units of a layer are shown, and of each so many images."""


def show_units(loaded: Session, layer: str | None, data: str | None, out: Path | None, json: bool) -> None:
    """Print, and draw into the PNG `out`, which held-out images, or images of `data`, move some units of a
    `layer` most; of the block in the middle if none is named.

    UserError for a run of no convolutions, and for what is no layer of maps.
    """
    path, task, model = loaded.run.path, with_center_crop(loaded.task), loaded.model
    image, encoder = loaded.config.data.image, getattr(model, "encoder", None)
    learned = first_layer_filters(model, image.channels, image.size) is not None
    if not (task.trains_networks and isinstance(encoder, ImageEncoder) and encoder.blocks and learned):
        raise UserError(f"{path}: units are shown of networks with convolutions that were trained for images")
    check_png_path(out)
    name = layer or f"encoder.blocks.{len(encoder.blocks) // 2}"
    part, split, _ = loaded.held_out(data, "with --data")
    order = task.example_batches(part.examples)
    count = _count_units(loaded, name, order.batch(0, 0).columns["source"][:1])
    units = evenly_spaced(count, UNITS_SHOWN)
    with ProgressBar("images seen") as watch:
        found = top_responses(model, name, units, order, IMAGES_PER_UNIT, watch)
    responses = [one for some in found for one in some]
    chosen = part.examples.subset([one.row for one in responses])
    images = _model_inputs(task.example_batches(chosen)).to(_device(loaded))
    asked = [unit for unit, some in zip(units, found, strict=True) for _ in some]
    drawn = guided_signals(model, name, images, asked, [one.position for one in responses])
    if out is not None:
        patches = _patches(responses, drawn, part.examples)
        rows = [
            (f"unit {unit}", [next(patches) for _ in some]) for unit, some in zip(units, found, strict=True)
        ]
        atomic_write(out, plot_units(rows, f"{name} of {path}, {split} images"))
    if json:
        told = [
            {"unit": unit, "source": part.sources[one.row], "label": part.references[one.row]}
            | {"value": one.value, "window": window._asdict()}
            for unit, one, window in zip(asked, responses, drawn.windows, strict=True)
        ]
        facts = {
            "run": str(path),
            "split": split,
            "layer": name,
            "units": count,
            "control": mean_correlation(drawn),
        }
        print_json(facts | {"responses": told} | ({} if out is None else {"picture": str(out)}))
        return
    _print_result(name, count, units, found, part.references, mean_correlation(drawn), out)


def _count_units(loaded: Session, layer: str, image: Tensor) -> int:
    """How many a layer has, by a look at one image."""
    names = [f"encoder.blocks.{number}" for number in range(len(loaded.model.encoder.blocks))]
    if layer not in dict(loaded.model.named_modules()):
        raise UserError(
            f"--layer {layer}: {loaded.run.path} has no such layer; its blocks are {', '.join(names)}"
        )
    try:
        with torch.inference_mode():
            return feature_maps(loaded.model, layer, image.to(_device(loaded))).shape[1]
    except ValueError as error:
        raise UserError(f"--layer {error}; choose one of {', '.join(names)}") from None


def _device(loaded: Session) -> torch.device:
    device: torch.device = next(loaded.model.parameters()).device
    return device


def _model_inputs(batches: Batches) -> Tensor:
    """As the model is fed them, row by row."""
    found: dict[int, Tensor] = {}
    for batch in iterate_batches(batches, no_progress):
        found |= dict(zip(batch.rows.tolist(), batch.columns["source"], strict=True))
    return torch.stack([found[row] for row in sorted(found)])


def _patches(
    responses: Sequence[UnitResponse], guided_signals_shown: GuidedSignals, examples: ImageExamples
) -> Any:
    for one, signal, control, window in zip(responses, *guided_signals_shown, strict=True):
        rows, columns = slice(window.top, window.bottom), slice(window.left, window.right)
        pixels = examples.center_crop(one.row)[rows, columns]
        yield UnitPatch(pixels, signal[:, rows, columns].numpy(), control[:, rows, columns].numpy())


def _print_result(
    layer: str,
    count: int,
    units: Sequence[int],
    responses_by_unit: Sequence[Sequence[UnitResponse]],
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
        for unit, some in zip(units, responses_by_unit, strict=True)
    ]
    STDOUT.print(format_table([head, *rows]), soft_wrap=True, markup=False)
    facts = [("layer", f"{layer}, {len(units)} of its {count:,} units")]
    if control is not None:
        facts.append(("control", f"correlation {control:.2f} with what a layer of random weights draws"))
    facts.append(("caveat", CAVEAT))
    print_facts([*facts, *([] if out is None else [("picture", str(out))])], STDOUT)
