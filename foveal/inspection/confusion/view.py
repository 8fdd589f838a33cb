"""The view `confusion` of a run: who is taken for whom."""

from itertools import chain
from pathlib import Path

from foveal.core.errors import UserError
from foveal.inspection.confusion.plot import draw
from foveal.metrics.labels import Confusion, confusion
from foveal.metrics.report import aligned
from foveal.store.durable import replace_file
from foveal.tasks.evaluation_data import held_out
from foveal.tasks.labeling import ChoosingKind
from foveal.tasks.session import Loaded, kind_of
from foveal.tasks.vqa.task import ChooseKind
from foveal.ui.console import OUTPUT, check_picture, facts_table, result_line
from foveal.ui.progress_bar import Meter

WORST = 10
"""So many pairs of classes are told."""


def show_confusion(loaded: Loaded, data: str | None, out: Path | None, json: bool) -> None:
    """Print, and draw into the PNG `out`, which labels the run gives to the examples of each class, held-out
    ones or those of `data`.

    UserError for a run without classes, and where nothing is held out.
    """
    path, config, kind = loaded.run.path, loaded.config, kind_of(loaded.config)
    if not isinstance(kind, ChoosingKind) or isinstance(kind, ChooseKind):
        raise UserError(f"{path}: a run without classes of its own (task {config.task.name})")
    check_picture(out)
    part, split, _ = held_out(loaded, data, "with --data")
    with Meter("labels given") as watch:
        given = kind.choices(config, loaded.model, loaded.inputs, part.examples, watch)
    right = [[label] if isinstance(label, str) else label for label in part.answers]
    found = confusion([*chain(*right)], [*chain(*given)])
    if out is not None:
        replace_file(out, draw(found, f"{path}, {split}"))
    if json:
        counts = {"labels": found.labels, "counts": found.counts.tolist()}
        classes = {"by_class": [vars(one) for one in found.by_class()]}
        picture = {} if out is None else {"picture": str(out)}
        result_line({"run": str(path), "split": split} | counts | classes | picture)
        return
    _tell(found, split)
    if out is not None:
        facts_table([("picture", str(out))], OUTPUT)


def _tell(found: Confusion, split: str) -> None:
    rows = [["class", split, "precision", "recall", "f1"]]
    for one in found.by_class():
        shares = (f"{100 * share:.1f} %" for share in (one.precision, one.recall, one.f1))
        rows.append([one.label, f"{one.support:,}", *shares])
    OUTPUT.print(aligned(rows), soft_wrap=True, markup=False)
    pairs = found.mistaken(WORST)
    if pairs:
        head = ["right", "taken for", "times", "of the class"]
        told = [[one, other, f"{count:,}", f"{100 * share:.1f} %"] for one, other, count, share in pairs]
        OUTPUT.print("\n" + aligned([head, *told]), soft_wrap=True, markup=False)
