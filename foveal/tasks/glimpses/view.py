"""The view `glimpses` of a run: where it looked in an image, and what it would have answered there."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from foveal.core.errors import UserError
from foveal.data.core.split_data import evenly
from foveal.data.images.image_batches import centres, gather, standardised
from foveal.inspection.neighbors.view import LETTERS, queries
from foveal.store.durable import replace_file
from foveal.tasks.evaluation_data import SHOWN
from foveal.tasks.glimpses.glimpse_sensor import retina
from foveal.tasks.glimpses.plot import Glimpsed, draw
from foveal.tasks.glimpses.task import GlimpseKind
from foveal.tasks.session import Loaded, kind_of, prepare_again
from foveal.ui.console import OUTPUT, check_picture, facts_table, result_line, say, shortened


def show_glimpses(loaded: Loaded, query: str | None, out: Path | None, json: bool) -> None:
    """Print, and draw into the PNG `out`, the paths over the pictures at `query`, or over held-out ones.

    UserError for a run of another task.
    """
    kind = kind_of(loaded.config)
    if not isinstance(kind, GlimpseKind):
        raise UserError(
            f"{loaded.run.path}: a run of no glimpses; train one with foveal train DATA --model glimpse"
        )
    check_picture(out)
    held_out = None if query is not None else prepare_again(loaded.run, say)
    pictures, sources, labels = queries(kind, loaded.config, loaded.inputs, held_out, query)
    rows = np.array(evenly(len(pictures), SHOWN if query is None else len(pictures)), np.int64)
    batch = gather(pictures, rows, standardised(centres(pictures, rows), pictures))
    with torch.inference_mode():
        path = loaded.task.look(batch)
    places, chances = path.places.cpu().numpy(), path.answers.float().softmax(2).cpu().numpy()
    names = np.array(loaded.inputs.labels)[chances.argmax(2)]
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
        replace_file(out, draw(_drawn(loaded, batch.columns["source"], path.places, found)))
    _tell({"run": str(loaded.run.path), "images": found}, out, json)


def _drawn(loaded: Loaded, images: torch.Tensor, places: torch.Tensor, found: list[Any]) -> list[Glimpsed]:
    look, statistics = loaded.config.model.glimpse, loaded.inputs.statistics
    seen = torch.stack([retina(images, place, look.side, look.scales) for place in places.cpu().unbind(1)], 1)
    return [
        Glimpsed(
            statistics.levels(images[number]),
            places[number].cpu().numpy(),
            statistics.levels(seen[number]),
            [(shortened(step["answer"], LETTERS), step["probability"]) for step in one["path"]],
            None if one["label"] is None else shortened(one["label"], LETTERS),
        )
        for number, one in enumerate(found)
    ]


def _tell(result: dict[str, Any], out: Path | None, json: bool) -> None:
    if json:
        result_line(result | ({} if out is None else {"picture": str(out)}))
        return
    for one in result["images"]:
        OUTPUT.print(f"{one['source']}{'' if one['label'] is None else ': ' + one['label']}", markup=False)
        rows = [
            (
                f"  {number}",
                f"{step['place'][0]:+.2f} down, {step['place'][1]:+.2f} across: "
                f"{step['answer']}, {100 * step['probability']:.1f} %",
            )
            for number, step in enumerate(one["path"], 1)
        ]
        facts_table(rows, OUTPUT)
    if out is not None:
        facts_table([("picture", str(out))], OUTPUT)
