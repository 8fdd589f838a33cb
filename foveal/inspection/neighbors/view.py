"""The view `find_neighbors` of a run: which images are nearest to a picture, by features and by pixels."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.core.prepared_data import PreparedData, ReusedProcessors
from foveal.data.core.split_data import SplitData, evenly_spaced
from foveal.data.images.image_examples import ImageExamples
from foveal.inspection.neighbors.compute import (
    CAVEAT,
    DistanceMeasure,
    NearestNeighbors,
    find_neighbors,
    majority_labels,
)
from foveal.inspection.neighbors.plot import NeighborImage, QueryNeighbors, plot_neighbors
from foveal.store.durable import atomic_write
from foveal.tasks.base import DataPaths, Task
from foveal.tasks.session import Session, prepare_run_data
from foveal.ui.console import STDOUT, check_png_path, log, print_facts, print_json, truncate
from foveal.ui.progress_bar import ProgressBar

QUERIES_SHOWN, MAX_LABEL_LENGTH = 5, 16
"""So many held-out images are drawn, where no picture is asked for; longer labels are cut."""


def with_center_crop(task: Any, **fractions: float) -> Any:
    """The task with one view of each image; and other `fractions` of the data."""
    config = task.config
    image = config.data.image.model_copy(update={"tta": "none", "tta_scales": "1"})
    data = config.data.model_copy(update={"image": image, **fractions})
    return type(task)(config.model_copy(update={"data": data}), task.processor, task.model)


def show_neighbors(
    loaded: Session,
    query: str | None,
    data: str | None,
    k: int,
    measure: DistanceMeasure,
    out: Path | None,
    json: bool,
) -> None:
    """Print, and draw into the PNG `out`, the `k` nearest to the pictures at `query` among the run's training
    images, or all images of `data`; without `query` those of its held-out images, and how often the nearest
    have the right label.

    UserError for a run that sees no images, and where there are none to look for.
    """
    if not loaded.task.trains_networks:
        raise UserError(
            f"{loaded.run.path}: neighbours are found by an encoder of images, and this run has none"
        )
    if k < 1:
        raise UserError(f"--nearest {k}: expected 1 or more")
    check_png_path(out)
    task = with_center_crop(loaded.task)
    if query is not None:
        task = with_center_crop(loaded.task, valid_fraction=0.0, test_fraction=0.0)
    prepared = _prepare_data(loaded, task, data)
    task = task.bound(prepared.processor, loaded.model)
    asked_for, sources, labels = load_query_images(task, prepared, query)
    asked, known = task.example_batches(asked_for), task.eval_batches(prepared.train)
    with ProgressBar("images seen") as watch:
        found = find_neighbors(loaded.model, asked, known, k, measure, watch)
    chosen = [*range(len(asked_for))]
    result: dict[str, Any] = {"run": str(loaded.run.path), "measure": measure}
    if query is None:
        result["accuracy"] = {
            name: float(np.mean([one == label for one, label in zip(votes, labels, strict=True)]))
            for name, near in found._asdict().items()
            if (votes := majority_labels(near, prepared.train.references))
        }
        chosen = evenly_spaced(len(asked_for), QUERIES_SHOWN)
    result["queries"] = [
        {"source": sources[row], "label": labels[row] or None}
        | {name: _neighbors_json(near, row, prepared.train) for name, near in found._asdict().items()}
        for row in chosen
    ]
    if out is not None:
        sheets = [
            QueryNeighbors(
                NeighborImage(asked_for.center_crop(row), truncate(labels[row], MAX_LABEL_LENGTH)),
                *(_neighbor_images(near, row, prepared.train) for near in found),
            )
            for row in chosen
        ]
        atomic_write(out, plot_neighbors(sheets, measure))
    _print_result(result, k, out, json)


def _prepare_data(
    loaded: Session, task: Task, data: str | None
) -> PreparedData[Any, SplitData[ImageExamples]]:
    if data is None:
        return prepare_run_data(loaded.run, log)
    taken = ReusedProcessors(loaded.processor.source, loaded.processor.labels)
    return task.bound(None).prepare(DataPaths(data), log, taken)


def load_query_images(
    task: Any,
    prepared: PreparedData[Any, SplitData[ImageExamples]] | None,
    query: str | None,
) -> tuple[ImageExamples, Sequence[str], Sequence[str]]:
    """The pictures at `query`, or those held out, their names, and their labels, empty where unknown."""
    if query is not None:
        rows, pictures, _ = prepare_examples.read_unlabeled(
            task.form, query, task.processor, task.config.data, log
        )
        return pictures, [row.fields["source"] for row in rows], [""] * len(rows)
    held_out = None if prepared is None else prepared.held_out
    if held_out is None:
        raise UserError("no held-out images to look for: name a picture with --query")
    return held_out.examples, held_out.sources, held_out.references


def _neighbors_json(
    neighbors: NearestNeighbors, row: int, candidates: SplitData[ImageExamples]
) -> list[dict[str, Any]]:
    found = zip(neighbors.rows[row].tolist(), neighbors.distances[row].tolist(), strict=True)
    return [
        {"source": candidates.sources[place], "label": candidates.references[place], "distance": distance}
        for place, distance in found
    ]


def _neighbor_images(
    neighbors: NearestNeighbors, row: int, candidates: SplitData[ImageExamples]
) -> list[NeighborImage]:
    found = zip(neighbors.rows[row].tolist(), neighbors.distances[row].tolist(), strict=True)
    return [
        NeighborImage(
            candidates.examples.center_crop(place),
            truncate(candidates.references[place], MAX_LABEL_LENGTH),
            distance,
        )
        for place, distance in found
    ]


def _print_result(result: dict[str, Any], k: int, out: Path | None, json: bool) -> None:
    if json:
        print_json(result | ({} if out is None else {"picture": str(out)}))
        return
    for one in result["queries"]:
        STDOUT.print(f"{one['source']}{'' if one['label'] is None else ': ' + one['label']}", markup=False)
        names = {"features": result["measure"], "pixels": "euclidean"}
        rows = [
            (f"  {name if not place else ''}", f"{near['distance']:.4f}  {near['label']}  {near['source']}")
            for name in names
            for place, near in enumerate(one[name])
        ]
        print_facts(rows, STDOUT)
    more = [("caveat", CAVEAT)]
    if "accuracy" in result:
        shares = ", ".join(f"{name} {100 * share:.1f} %" for name, share in result["accuracy"].items())
        more.insert(0, ("right", f"the label that most of the {k} nearest have: by {shares}"))
    print_facts([*more, *([] if out is None else [("picture", str(out))])], STDOUT)
