"""What a training and an evaluation print: reports, the worst examples, and what comes next."""

import shlex
from pathlib import Path
from typing import Any

from rich.text import Text

from foveal.core.terminal_text import escape_controls
from foveal.metrics.report import Report
from foveal.plugins.stored import options_to_open
from foveal.store.run import RunFolder
from foveal.tasks.base import Task
from foveal.tasks.baseline import Baseline
from foveal.ui.console import (
    STDERR,
    SafeConsole,
    format_duration,
    format_extra_metrics,
    format_loss,
    print_facts,
    truncate,
)
from foveal.ui.wording import reword

WORST_EXAMPLES, MAX_EXAMPLE_LENGTH = 3, 160
"""Worst examples that are shown, and characters of each."""


def shell_command(name: str, path: Path, *more: str) -> str:
    """Return a command to type into a shell, with the options that a run of plugins needs."""
    return shlex.join(["foveal", name, str(path), *more, *options_to_open(path)])


def loss_rows(task: Task, split: str, scores: dict[str, Any], report: Report | None) -> list[tuple[str, str]]:
    """Return the loss of a split for display. A share of right examples has their number."""
    name = {"valid": "validation", "test": "test"}.get(split, split)
    perplexity = f", perplexity {scores['perplexity']:.4g}" if "perplexity" in scores else ""
    per = f" per {task.loss_unit}"
    count = f" of {report.examples:,}" if report is not None and report.scores[0].is_share else ""
    shares = format_extra_metrics(scores)
    loss = f"{format_loss(scores, per)}{shares}{count if '%' in shares else ''}{perplexity}"
    return [(f"{name} loss", loss)]


def baseline_rows(baseline: Baseline) -> list[tuple[str, str]]:
    """Return the score of a simple method for display."""
    return [("baseline", f"{baseline.words_of(baseline.value)}: {baseline.name}")]


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


def print_summary(
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
        rows += baseline_rows(baseline)
    rows.append(("weights", f"{run.weights} ({weights})"))
    rows += [("curves", str(run.curves))] if result["steps"] else []
    rows += [
        ("next", shell_command(name, run.path, *options)),
        ("", shell_command("evaluate", run.path, *missing)),
    ]
    view = "" if missing else task.suggested_view
    rows.append(("", shell_command("inspect", run.path, *((view, "--out", f"{view}.png") if view else ()))))
    STDERR.print()
    print_facts(rows)


def _training_row(task: Task, steps: int, seconds: float) -> tuple[str, str]:
    """Return what the training did, for display."""
    if steps:
        return "trained", f"{steps:,} steps in {format_duration(seconds)} of training"
    if task.fits_head:
        return "fitted", "the head, at once, from all training rows; there are no training steps"
    return "trained", f"nothing: a budget of {task.config.training.budget} leaves the weights as they start"
