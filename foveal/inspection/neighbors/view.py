"""The view `neighbours` of a run: which images are nearest to a picture, by features and by pixels."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.core.prepared_data import Prepared, Taken
from foveal.data.core.split_data import Part, evenly
from foveal.data.images.image_examples import Pictures
from foveal.inspection.neighbors.compute import CAVEAT, Measure, Nearest, neighbours, voted
from foveal.inspection.neighbors.plot import Sheet, Shown, draw
from foveal.store.durable import replace_file
from foveal.tasks.image_classification import ImageKind
from foveal.tasks.session import Given, Loaded, held_out_order, kind_of, prepare_again
from foveal.ui.console import OUTPUT, check_picture, facts_table, result_line, say, shortened
from foveal.ui.progress_bar import Meter

SHOWN, LETTERS = 5, 16
"""So many held-out images are drawn, where no picture is asked for; longer labels are cut."""


def centred(config: Config, **shares: float) -> Config:
    """With one view of each image; and other `shares` of the data, `valid` and `test`."""
    image = config.data.image.model_copy(update={"views": "centre", "scales": "1"})
    return config.model_copy(update={"data": config.data.model_copy(update={"image": image, **shares})})


def show_neighbours(
    loaded: Loaded,
    query: str | None,
    data: str | None,
    k: int,
    measure: Measure,
    out: Path | None,
    json: bool,
) -> None:
    """Print, and draw into the PNG `out`, the `k` nearest to the pictures at `query` among the run's training
    images, or all images of `data`; without `query` those of its held-out images, and how often the nearest
    have the right label.

    UserError for a run that sees no images, and where there are none to look for.
    """
    kind = kind_of(loaded.config)
    if not isinstance(kind, ImageKind) or loaded.config.model.encoder.kind == "none":
        raise UserError(
            f"{loaded.run.path}: neighbours are found by an encoder of images, and this run has none"
        )
    if k < 1:
        raise UserError(f"--nearest {k}: expected 1 or more")
    check_picture(out)
    config = centred(loaded.config) if query is None else centred(loaded.config, valid=0.0, test=0.0)
    prepared = _prepared(loaded, config, data)
    asked_for, sources, labels = queries(kind, config, prepared.inputs, prepared, query)
    asked, known = kind.once(config, asked_for), held_out_order(config, prepared.train)
    with Meter("images seen") as watch:
        found = neighbours(loaded.model, asked, known, k, measure, watch)
    chosen = [*range(len(asked_for))]
    result: dict[str, Any] = {"run": str(loaded.run.path), "measure": measure}
    if query is None:
        result["accuracy"] = {
            name: float(np.mean([one == label for one, label in zip(votes, labels, strict=True)]))
            for name, near in found._asdict().items()
            if (votes := voted(near, prepared.train.answers))
        }
        chosen = evenly(len(asked_for), SHOWN)
    result["queries"] = [
        {"source": sources[row], "label": labels[row] or None}
        | {name: _near(near, row, prepared.train) for name, near in found._asdict().items()}
        for row in chosen
    ]
    if out is not None:
        sheets = [
            Sheet(
                Shown(asked_for.centre(row), shortened(labels[row], LETTERS)),
                *(_drawn(near, row, prepared.train) for near in found),
            )
            for row in chosen
        ]
        replace_file(out, draw(sheets, measure))
    _tell(result, k, out, json)


def _prepared(loaded: Loaded, config: Config, data: str | None) -> Prepared[Any, Part[Pictures]]:
    if data is None:
        return prepare_again(loaded.run, say)
    taken = Taken(loaded.inputs.source, loaded.inputs.labels)
    return kind_of(config).prepare(config, Given(data), say, None, taken)


def queries(
    kind: ImageKind,
    config: Config,
    inputs: Any,
    prepared: Prepared[Any, Part[Pictures]] | None,
    query: str | None,
) -> tuple[Pictures, Sequence[str], Sequence[str]]:
    """The pictures at `query`, or those held out, their names, and their labels, empty where unknown."""
    if query is not None:
        rows, pictures, _ = prepare_examples.read_questions(kind.form, query, inputs, config.data, say)
        return pictures, [row.fields["source"] for row in rows], [""] * len(rows)
    held_out = None if prepared is None else prepared.held_out
    if held_out is None:
        raise UserError("no held-out images to look for: name a picture with --query")
    return held_out.examples, held_out.sources, held_out.answers


def _near(near: Nearest, row: int, among: Part[Pictures]) -> list[dict[str, Any]]:
    found = zip(near.rows[row].tolist(), near.distances[row].tolist(), strict=True)
    return [
        {"source": among.sources[place], "label": among.answers[place], "distance": distance}
        for place, distance in found
    ]


def _drawn(near: Nearest, row: int, among: Part[Pictures]) -> list[Shown]:
    found = zip(near.rows[row].tolist(), near.distances[row].tolist(), strict=True)
    return [
        Shown(among.examples.centre(place), shortened(among.answers[place], LETTERS), distance)
        for place, distance in found
    ]


def _tell(result: dict[str, Any], k: int, out: Path | None, json: bool) -> None:
    if json:
        result_line(result | ({} if out is None else {"picture": str(out)}))
        return
    for one in result["queries"]:
        OUTPUT.print(f"{one['source']}{'' if one['label'] is None else ': ' + one['label']}", markup=False)
        names = {"features": result["measure"], "pixels": "euclidean"}
        rows = [
            (f"  {name if not place else ''}", f"{near['distance']:.4f}  {near['label']}  {near['source']}")
            for name in names
            for place, near in enumerate(one[name])
        ]
        facts_table(rows, OUTPUT)
    more = [("caveat", CAVEAT)]
    if "accuracy" in result:
        shares = ", ".join(f"{name} {100 * share:.1f} %" for name, share in result["accuracy"].items())
        more.insert(0, ("right", f"the label that most of the {k} nearest have: by {shares}"))
    facts_table([*more, *([] if out is None else [("picture", str(out))])], OUTPUT)
