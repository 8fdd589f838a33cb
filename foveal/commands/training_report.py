"""What `train` and `resume` have in common: train to the end, measure, draw, and say what to do next."""

import math
import shlex
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text
from torch import nn

from foveal.commands.models import parts_of
from foveal.config import Config, TaskName
from foveal.core.signals import Interrupted, Signals
from foveal.data.core.prepared_data import Prepared
from foveal.inspection.curves import draw_curves
from foveal.metrics.report import Report, make_report
from foveal.store.run import Run
from foveal.tasks.base import Judged
from foveal.tasks.session import build_task, held_out_order, kind_of, load_run_weights, training_order
from foveal.training.evaluate import evaluate
from foveal.training.plan import parse_budget
from foveal.training.protocols import Task
from foveal.training.trainer import FinishedError, Trainer
from foveal.ui.console import (
    ERROR,
    besides,
    duration,
    facts_table,
    loss_of,
    result_line,
    shortened,
)
from foveal.ui.progress_bar import Meter
from foveal.ui.training_screen import Screen

USES: dict[TaskName, tuple[str, tuple[str, ...]]] = {
    "language": ("generate", ()),
    "translate": ("generate", ("--prompt", "TEXT")),
    "transduce": ("generate", ("--prompt", "TEXT")),
    "mask": ("generate", ("--prompt", "a text with a [MASK]")),
    "caption": ("generate", ("--input", "DATA")),
    "draw": ("generate", ("--samples", "100", "--out", "drawings.png")),
    "narrate": ("generate", ("--input", "DATA")),
}
"""What a run of a task is for, a command and its options; the others answer: predict."""
VIEWS: dict[TaskName, str] = {
    **dict.fromkeys(("classify", "tag", "sounds", "series", "steps", "images", "answer"), "confusion"),
    **dict.fromkeys(("clips", "frames", "narrate"), "filmstrip"),
    "glimpse": "glimpses",
    "navigate": "walks",
}
"""The view of a run that shows best what it has learnt."""
CHOICES: dict[TaskName, str] = {
    "classify": "text",
    "sounds": "recording",
    "series": "series",
    "tag": "word",
    "steps": "step",
    "images": "image",
    "clips": "clip",
    "frames": "frame",
    "glimpse": "image",
    "draw": "image",
    "answer": "question",
    "choose": "question",
    "navigate": "move",
}
"""Of what there is a loss, where it is of no token but of a label."""
LENGTHS: dict[TaskName, str] = {
    "transcribe": "frames",
    "sounds": "frames",
    "series": "steps",
    "steps": "steps",
    "clips": "frames",
    "frames": "frames",
    "narrate": "frames",
    "navigate": "moves",
}
"""What a source's length is counted in, where not in words."""
WORST, SHOWN = 3, 160
"""Of the worst examples so many are shown, and so many characters of each."""


def command(name: str, path: Path, *more: str) -> str:
    """A command to type."""
    return shlex.join(["foveal", name, str(path), *more])


def train_and_report(
    run: Run, model: nn.Module, data: Prepared[Any, Any], signals: Signals, json: bool
) -> None:
    """Train the run from where it is to its end; then score, draw and show it. The curves come last: a
    finished run without them was stopped before its report, which is then made."""
    config, picture = run.config, run.path / "curves.png"
    kind = kind_of(config)
    unit = kind.describe(config, data).unit
    held_out = data.held_out
    task = build_task(config, model, data.inputs, held_out if data.valid is None else data.valid)
    valid = None if data.valid is None else held_out_order(config, data.valid)
    budget = parse_budget(config.training.budget)
    screen = Screen(budget.amount if budget.unit == "seconds" else None, unit)
    trainer = Trainer(run, model, task, training_order(config, data.train), valid, screen)
    try:
        with screen:
            try:
                trainer.run(signals)
            except FinishedError:
                if picture.exists():
                    raise
        progress, report = trainer.state.progress, None
        load_run_weights(run, model)
        result: dict[str, Any] = {"run": str(run.path), "steps": progress.step, "seconds": progress.seconds}
        if held_out is not None:
            split = "valid" if data.test is None else "test"
            scores, report = measure(config, model, task, data.inputs, held_out, split)
            result |= {"split": split} | scores
            result |= {} if report is None else report.to_json()
        made = ", ".join(map(str, parts_of(config)))
        choice = CHOICES.get(config.task.name, "token")
        draw_curves(run.metrics, picture, f"{run.path.name}: {made}", unit, choice)
    except Interrupted as stop:
        at = f" at step {trainer.state.progress.step:,}; "
        saved = "its last checkpoint stays" if any(run.checkpoints.iterdir()) else "nothing is saved yet"
        saved = saved if signals.urgent else "everything is saved"
        raise Interrupted(stop.number, f"{at}{saved}; go on with: {command('resume', run.path)}") from None
    _show(run, result, report, progress.best_step)
    if json:
        result_line(result)


def measure(
    config: Config, model: nn.Module, task: Task, inputs: Any, held_out: Any, split: str
) -> tuple[dict[str, float], Report | None]:
    """The loss of held-out data with what belongs to it, and the scores of what the model makes of them."""
    order, precision = held_out_order(config, held_out), config.training.precision
    chosen: dict[int, list[int]] = {}
    with Meter(f"{split} loss") as watch:
        scores = evaluate(model, task, order, precision=precision, watch=watch, chosen=chosen)
    with Meter(f"{split} answers") as watch:
        found = kind_of(config).judge(config, model, inputs, held_out, chosen, watch)
    return scored(config.task.name, scores), judged(found)


def scored(task: TaskName, scores: dict[str, float]) -> dict[str, float]:
    """The scores, of a task that predicts tokens with the perplexity, `exp(loss)`."""
    if task in CHOICES:
        return scores
    return scores | {"perplexity": math.exp(scores["loss"]) if scores["loss"] < 700 else math.inf}


def score_rows(task: TaskName, split: str, scores: dict[str, Any]) -> list[tuple[str, str]]:
    """The loss of a split in words."""
    name = {"valid": "validation", "test": "test"}.get(split, split)
    perplexity = f", perplexity {scores['perplexity']:.4g}" if "perplexity" in scores else ""
    per = f" per {CHOICES.get(task, 'token')}"
    loss = f"{loss_of(scores, per)}{besides(scores)}{perplexity}"
    return [(f"{name} loss", loss)]


def judged(found: Judged | None) -> Report | None:
    """The scores of what a model made, with intervals, by length, and the worst examples."""
    if found is None:
        return None
    return make_report(found.scores, found.lengths, found.sources, found.references, found.outputs)


def show_report(task: TaskName, report: Report, console: Console) -> None:
    """Two tables, and the worst of the examples."""
    console.print()
    console.print(Text(report.table(f"length ({LENGTHS.get(task, 'words')})")), soft_wrap=True)
    for score in report.scores:
        if score.signature:
            console.print(Text(f"{score.name}: {score.signature}", style="dim"), soft_wrap=True)
    if report.alarm:
        console.print(Text(f"\n{report.alarm}", style="yellow"), soft_wrap=True)
    if report.worst:
        console.print(Text(f"\nworst by {report.scores[0].name}", style="bold"))
    for example in report.worst[:WORST]:
        for name, text in (
            ("source", example.source),
            ("right", example.reference),
            ("found", example.output),
        ):
            console.print(Text.assemble((name.ljust(8), "cyan"), shortened(text, SHOWN)), soft_wrap=True)
        console.print()


def _show(run: Run, result: dict[str, Any], report: Report | None, best_step: int | None) -> None:
    task, other = run.config.task.name, () if "split" in result else ("DATA",)
    name, options = USES.get(task, ("predict", ("DATA",)))
    weights = "the last" if best_step is None else f"of step {best_step:,}, the best on the validation set"
    if report is not None:
        show_report(task, report, ERROR)
    rows = [("trained", f"{result['steps']:,} steps in {duration(result['seconds'])} of training")]
    rows += score_rows(task, result["split"], result) if "split" in result else []
    rows += [
        ("weights", f"{run.weights} ({weights})"),
        ("curves", str(run.path / "curves.png")),
        ("next", command(name, run.path, *options)),
        ("", command("evaluate", run.path, *other)),
    ]
    if task in VIEWS and not other:
        rows.append(("", command("inspect", run.path, VIEWS[task], "--out", f"{VIEWS[task]}.png")))
    ERROR.print()
    facts_table(rows)
