"""The view `confusion` of a run: who is taken for whom."""

from itertools import chain
from pathlib import Path

from foveal.core.errors import UserError
from foveal.inspection.confusion.plot import plot_confusion
from foveal.metrics.labels import ConfusionMatrix, confusion_matrix
from foveal.metrics.report import format_table
from foveal.store.durable import atomic_write
from foveal.tasks.session import Session
from foveal.ui.console import STDOUT, check_png_path, print_facts, print_json
from foveal.ui.progress_bar import ProgressBar

CONFUSED_PAIRS = 10
"""So many pairs of classes are told."""


def show_confusion(loaded: Session, data: str | None, out: Path | None, json: bool) -> None:
    """Print, and draw into the PNG `out`, which labels the run gives to the examples of each class, held-out
    ones or those of `data`.

    UserError for a run without classes, and where nothing is held out.
    """
    path, task = loaded.run.path, loaded.task
    if not task.has_classes:
        raise UserError(f"{path}: a run without classes of its own (task {task.name})")
    check_png_path(out)
    part, split, _ = loaded.held_out(data, "with --data")
    with ProgressBar("labels given") as watch:
        given = task.predicted_labels(part.examples, watch)
    right = [[label] if isinstance(label, str) else label for label in part.references]
    found = confusion_matrix([*chain(*right)], [*chain(*given)])
    if out is not None:
        atomic_write(out, plot_confusion(found, f"{path}, {split}"))
    if json:
        counts = {"labels": found.labels, "counts": found.counts.tolist()}
        classes = {"by_class": [vars(one) for one in found.per_class()]}
        picture = {} if out is None else {"picture": str(out)}
        print_json({"run": str(path), "split": split} | counts | classes | picture)
        return
    _print_result(found, split)
    if out is not None:
        print_facts([("picture", str(out))], STDOUT)


def _print_result(confusion: ConfusionMatrix, split: str) -> None:
    rows = [["class", split, "precision", "recall", "f1"]]
    for one in confusion.per_class():
        shares = (f"{100 * share:.1f} %" for share in (one.precision, one.recall, one.f1))
        rows.append([one.label, f"{one.support:,}", *shares])
    STDOUT.print(format_table(rows), soft_wrap=True, markup=False)
    pairs = confusion.most_confused(CONFUSED_PAIRS)
    if pairs:
        head = ["right", "taken for", "times", "of the class"]
        told = [[one, other, f"{count:,}", f"{100 * share:.1f} %"] for one, other, count, share in pairs]
        STDOUT.print("\n" + format_table([head, *told]), soft_wrap=True, markup=False)
