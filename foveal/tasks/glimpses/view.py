"""The view `glimpses` of a run: where it looked in an image, and what it would have answered there."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from foveal.core.errors import UserError
from foveal.data.core.split_data import evenly_spaced
from foveal.data.images.image_batches import center_crops, collate_images, standardize_images
from foveal.inspection.neighbors.view import MAX_LABEL_LENGTH, load_query_images
from foveal.store.durable import atomic_write
from foveal.tasks.glimpses.glimpse_sensor import glimpse_sensor
from foveal.tasks.glimpses.plot import GlimpsedImage, plot_glimpses
from foveal.tasks.glimpses.task import GlimpsesTask
from foveal.tasks.session import EXAMPLES_SHOWN, Session, prepare_run_data
from foveal.ui.console import STDOUT, check_png_path, log, print_facts, print_json, truncate


def show_glimpses(loaded: Session, query: str | None, out: Path | None, json: bool) -> None:
    """Print, and draw into the PNG `out`, the paths over the pictures at `query`, or over held-out ones.

    UserError for a run of another task.
    """
    if not isinstance(loaded.task, GlimpsesTask):
        raise UserError(
            f"{loaded.run.path}: a run of no glimpses; train one with foveal train DATA --model glimpses"
        )
    check_png_path(out)
    held_out = None if query is not None else prepare_run_data(loaded.run, log)
    pictures, sources, labels = load_query_images(loaded.task, held_out, query)
    rows = np.array(
        evenly_spaced(len(pictures), EXAMPLES_SHOWN if query is None else len(pictures)), np.int64
    )
    batch = collate_images(pictures, rows, standardize_images(center_crops(pictures, rows), pictures))
    with torch.inference_mode():
        path = loaded.objective.rollout(batch)
    places, chances = path.locations.cpu().numpy(), path.logits.float().softmax(2).cpu().numpy()
    names = np.array(loaded.processor.labels)[chances.argmax(2)]
    found = [
        {
            "source": sources[row],
            "label": labels[row] or None,
            "path": [
                {"place": place.tolist(), "answer": str(name), "probability": float(chance.max())}
                for place, name, chance in zip(*looked, strict=True)
            ],
        }
        for row, *looked in zip(rows.tolist(), places, names, chances, strict=True)
    ]
    if out is not None:
        atomic_write(
            out, plot_glimpses(_glimpsed_images(loaded, batch.columns["source"], path.locations, found))
        )
    _print_result({"run": str(loaded.run.path), "images": found}, out, json)


def _glimpsed_images(
    loaded: Session, images: torch.Tensor, locations: torch.Tensor, paths: list[Any]
) -> list[GlimpsedImage]:
    side, scales = loaded.task.settings.glimpse_size, loaded.task.settings.glimpse_scales
    statistics = loaded.processor.statistics
    seen = torch.stack(
        [glimpse_sensor(images, place, side, scales) for place in locations.cpu().unbind(1)], 1
    )
    return [
        GlimpsedImage(
            statistics.to_pixels(images[number]),
            locations[number].cpu().numpy(),
            statistics.to_pixels(seen[number]),
            [(truncate(step["answer"], MAX_LABEL_LENGTH), step["probability"]) for step in one["path"]],
            None if one["label"] is None else truncate(one["label"], MAX_LABEL_LENGTH),
        )
        for number, one in enumerate(paths)
    ]


def _print_result(result: dict[str, Any], out: Path | None, json: bool) -> None:
    if json:
        print_json(result | ({} if out is None else {"picture": str(out)}))
        return
    for one in result["images"]:
        STDOUT.print(f"{one['source']}{'' if one['label'] is None else ': ' + one['label']}", markup=False)
        rows = [
            (
                f"  {number}",
                f"{step['place'][0]:+.2f} down, {step['place'][1]:+.2f} across: "
                f"{step['answer']}, {100 * step['probability']:.1f} %",
            )
            for number, step in enumerate(one["path"], 1)
        ]
        print_facts(rows, STDOUT)
    if out is not None:
        print_facts([("picture", str(out))], STDOUT)
