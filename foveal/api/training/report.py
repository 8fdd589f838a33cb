"""The common part of `train` and `resume`: training to the end, evaluation, curves and a summary."""

import math
import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.text import Text

from foveal.core.callbacks import Callback
from foveal.core.runtime import release_freed_memory
from foveal.core.signals import Interrupted, SignalHandler, TrainingInterrupted
from foveal.core.terminal_text import escape_controls
from foveal.data.core.prepared_data import PreparedData
from foveal.inspection.curves import curves_payload
from foveal.inspection.files import write_payload
from foveal.metrics.report import Report, make_report
from foveal.plugins.stored import options_to_open
from foveal.store.cache import shorten_unpacked_paths
from foveal.store.run import RunFolder
from foveal.store.scores import write_scores
from foveal.tasks.base import TOKEN, Task
from foveal.tasks.baseline import Baseline
from foveal.tasks.results import EvaluationResult, LabelsByRow
from foveal.tasks.warm_start import load_run_weights
from foveal.training.callback_registry import make_callbacks
from foveal.training.callbacks import CallbackList
from foveal.training.evaluate import evaluate
from foveal.training.plan import parse_budget
from foveal.training.protocols import Batches, Objective
from foveal.training.time_left import FinalTest
from foveal.training.trainer import FinishedError, Trainer
from foveal.ui.activity import Activity
from foveal.ui.console import (
    STDERR,
    SafeConsole,
    format_duration,
    format_extra_metrics,
    format_loss,
    print_facts,
    truncate,
)
from foveal.ui.progress_bar import ProgressBar
from foveal.ui.training_screen import TrainingScreen
from foveal.ui.wording import reword

WORST_EXAMPLES, MAX_EXAMPLE_LENGTH = 3, 160
"""Worst examples that are shown, and characters of each."""


def shell_command(name: str, path: Path, *more: str) -> str:
    """Return a command to type into a shell, with the options that a run of plugins needs."""
    return shlex.join(["foveal", name, str(path), *more, *options_to_open(path)])


def ignore_result(result: dict[str, Any]) -> None:
    """Do nothing with the scores of a training, which are printed in words as well."""


def eval_batches(task: Task, split_data: Any) -> Batches | None:
    """Return the batches that evaluate a split; None without the split."""
    return None if split_data is None else task.eval_batches(split_data)


def train_and_report(
    run: RunFolder,
    task: Task,
    data: PreparedData[Any, Any],
    batches: Batches,
    valid: Batches | None,
    signals: SignalHandler,
    on_result: Callable[[dict[str, Any]], None],
    callbacks: Iterable[Any] = (),
) -> None:
    """Train the run on `batches` from its last checkpoint to its end, with evaluations on `valid`. Then
    evaluate it, print scores, call `on_result` with them, and draw its curves. `callbacks` are called
    meanwhile.

    The curves come last, so that no damaged log costs the scores: a finished run without curves was stopped
    before its report, so the report is made now.

    Raises: UserError: the log of the run is damaged, so it has no curves.
    Raises: CallbackFailed: a callback raised an exception; a checkpoint was saved.
    """
    all_callbacks = CallbackList([*callbacks, *make_callbacks(run.config.training)])
    with all_callbacks.running():
        _train_and_report(run, task, data, batches, valid, signals, on_result, all_callbacks)


def _train_and_report(
    run: RunFolder,
    task: Task,
    data: PreparedData[Any, Any],
    batches: Batches,
    valid: Batches | None,
    signals: SignalHandler,
    on_result: Callable[[dict[str, Any]], None],
    callbacks: CallbackList,
) -> None:
    config, model, curves_file = run.config, task.model, run.path / "curves.png"
    unit, held_out = task.summarize(data).unit, data.held_out
    objective = task.objective(held_out if data.valid is None else data.valid)
    budget = parse_budget(config.training.budget)
    timed = budget.unit == "seconds" and run.read_plans().extended_at is None
    screen = TrainingScreen(budget.amount if timed else None, unit)
    tested = held_out if config.training.final_test else None
    test = FinalTest(batch_fraction=_batch_fraction(batches, valid))
    if tested is not None:
        evaluated = task.eval_batches(tested)
        try_outputs = partial(screen.try_outputs, partial(task.try_outputs, data.train, tested))
        test = FinalTest(evaluated.per_epoch, try_outputs, _batch_fraction(batches, valid or evaluated))
    callbacks.add_first(screen)
    trainer = Trainer(run, model, objective, batches, valid, callbacks, test)
    try:
        with screen:
            try:
                trainer.run(signals)
            except FinishedError:
                if curves_file.exists() or not trainer.state.counters.step:
                    raise
        progress, report, baseline = trainer.state.counters, None, None
        scores: dict[str, float] = {}
        load_run_weights(run, task)
        result: dict[str, Any] = {"run": str(run.path), "steps": progress.step, "seconds": progress.seconds}
        if tested is not None:
            split = "valid" if data.test is None else "test"
            scores, report = evaluate_and_score(task, objective, tested, split)
            result |= {"split": split} | scores
            result |= {} if report is None else report.to_json()
            release_freed_memory()  # that of the steps is not needed any more, and the baseline needs much
            with Activity("fitting the baseline"):
                baseline = task.baseline(data.train, tested)
            result |= {} if baseline is None else {"baseline": baseline.to_json()}
            callbacks.emit(Callback.on_test, result)
        has_held_out = held_out is not None
        _print_summary(run, task, result, report, progress.best_step, baseline, has_held_out)
        on_result(result)
        if "split" in result:
            write_scores(run.path, progress.step, result["split"], scores)
        components = ", ".join(map(str, task.components()))
        if progress.step:
            with Activity("drawing the curves"):
                title = f"{run.path.name}: {components}"
                write_payload(curves_payload(run.metrics, title, unit, task.loss_unit), curves_file)
    except Interrupted as stop:
        step = f" at step {trainer.state.counters.step:,}; "
        saved = "its last checkpoint stays" if any(run.checkpoints.iterdir()) else "nothing is saved yet"
        saved = saved if signals.urgent else "everything is saved"
        raise TrainingInterrupted(
            stop.number, f"{step}{saved}; go on with: {shell_command('resume', run.path)}"
        ) from None


def _batch_fraction(batches: Batches, evaluated: Batches | None) -> float:
    """Return the size of an evaluated batch as a fraction of a training batch's, by their tokens."""
    return 1.0 if evaluated is None else evaluated.batch(0, 0).tokens / max(1, batches.batch(0, 0).tokens)


def evaluate_and_score(
    task: Task, objective: Objective, held_out: Any, split: str
) -> tuple[dict[str, float], Report | None]:
    """Return the loss of held-out data with its metrics, and a report on the model's outputs."""
    batches, precision = task.eval_batches(held_out), task.config.training.precision
    predicted: LabelsByRow = {}
    with ProgressBar(f"{split} loss", before=f"{split} loss") as progress:
        scores = evaluate(
            task.model,
            objective,
            batches,
            precision=precision,
            progress=progress,
            predicted_labels=predicted,
        )
    with ProgressBar(f"{split} outputs", before=f"{split} outputs and scores") as progress:
        result = task.score(held_out, predicted, progress)
    return with_perplexity(task, scores), evaluation_report(result)


def with_perplexity(task: Task, scores: dict[str, float]) -> dict[str, float]:
    """Return the scores. If the task predicts tokens, add the perplexity, `exp(loss)`."""
    if task.loss_unit != TOKEN:
        return scores
    return scores | {"perplexity": math.exp(scores["loss"]) if scores["loss"] < 700 else math.inf}


def loss_rows(task: Task, split: str, scores: dict[str, Any], report: Report | None) -> list[tuple[str, str]]:
    """Return the loss of a split for display. A share of right examples has their number."""
    name = {"valid": "validation", "test": "test"}.get(split, split)
    perplexity = f", perplexity {scores['perplexity']:.4g}" if "perplexity" in scores else ""
    per = f" per {task.loss_unit}"
    count = f" of {report.examples:,}" if report is not None and report.scores[0].is_share else ""
    shares = format_extra_metrics(scores)
    loss = f"{format_loss(scores, per)}{shares}{count if '%' in shares else ''}{perplexity}"
    return [(f"{name} loss", loss)]


def evaluation_report(result: EvaluationResult | None) -> Report | None:
    """Return a report on a model's outputs: scores with intervals, scores by length, the worst examples."""
    if result is None:
        return None
    texts = result.sources, result.references, result.outputs
    report = make_report(
        result.scores,
        result.lengths,
        *texts,
        losses=result.losses,
        notes=result.notes,
        place=result.place,
    )
    worst = [replace(example, source=shorten_unpacked_paths(example.source)) for example in report.worst]
    return replace(report, worst=worst)


def print_report(task: Task, report: Report, console: SafeConsole) -> None:
    """Print two tables and the worst examples."""
    console.print()
    console.print_wrapped(report.table(f"length ({task.length_unit})"))
    for score in report.scores:
        if score.signature:
            console.print_wrapped(Text(f"{score.name}: {score.signature}", style="dim"))
    for line in report.legend:
        console.print_wrapped(Text(line, style="dim"))
    if report.warning:
        console.print_wrapped(Text(reword(f"\n{report.warning}"), style="yellow"))
    for note in report.notes:
        console.print_wrapped(Text(note, style="yellow"))
    if report.worst:
        console.print(Text(f"\nworst by {report.worst_by}", style="bold"))
    for example in report.worst[:WORST_EXAMPLES]:
        for name, text in (
            ("source", example.source),
            ("correct", example.reference),
            ("output", example.output),
        ):
            shown = escape_controls(truncate(text, MAX_EXAMPLE_LENGTH))
            console.print_wrapped(Text.assemble((name.ljust(9), "cyan"), shown), 9)
        console.print()


def _print_summary(
    run: RunFolder,
    task: Task,
    result: dict[str, Any],
    report: Report | None,
    best_step: int | None,
    baseline: Baseline | None,
    has_held_out: bool,
) -> None:
    missing = () if has_held_out else ("DATA",)
    name, *options = task.next_command
    weights = "the last" if best_step is None else f"of step {best_step:,}, the best on the validation set"
    weights = weights if result["steps"] else "fitted" if task.fits_head else "as they started"
    can_go_on = result["steps"] > 0 and best_step in (None, result["steps"])
    if baseline is not None and (warning := baseline.warning(result[baseline.metric], can_go_on)):
        STDERR.print()
        STDERR.print_wrapped(Text(reword(warning), style="yellow"))
    if report is not None:
        print_report(task, report, STDERR)
    rows = [_training_row(task, result["steps"], result["seconds"])]
    rows += loss_rows(task, result["split"], result, report) if "split" in result else []
    if baseline is not None:
        rows.append(("baseline", f"{baseline.words_of(baseline.value)}: {baseline.name}"))
    rows.append(("weights", f"{run.weights} ({weights})"))
    rows += [("curves", str(run.path / "curves.png"))] if result["steps"] else []
    rows += [
        ("next", shell_command(name, run.path, *options)),
        ("", shell_command("evaluate", run.path, *missing)),
    ]
    if (view := task.suggested_view) and not missing:
        rows.append(("", shell_command("inspect", run.path, view, "--out", f"{view}.png")))
    STDERR.print()
    print_facts(rows)


def _training_row(task: Task, steps: int, seconds: float) -> tuple[str, str]:
    """Return what the training did, for display."""
    if steps:
        return "trained", f"{steps:,} steps in {format_duration(seconds)} of training"
    if task.fits_head:
        return "fitted", "the head, at once, from all training rows; there are no training steps"
    return "trained", f"nothing: a budget of {task.config.training.budget} leaves the weights as they start"
