"""The output of a training run: a live line on a terminal, plain lines elsewhere."""

import math
import time
from collections.abc import Callable

from rich.progress import BarColumn, TextColumn
from rich.text import Text

from foveal.core.callbacks import Callback, Record, TrainingInfo
from foveal.core.progress import HasTotalSteps
from foveal.core.runtime import peak_memory
from foveal.core.terminal_text import escape_controls
from foveal.ui.activity import Activity
from foveal.ui.console import (
    PREVIEW_WIDTH,
    STDERR,
    format_duration,
    format_extra_metrics,
    format_loss,
    truncate,
)
from foveal.ui.live import is_live, new_progress
from foveal.ui.progress_bar import TimeLeftColumn

OVERRUN = 1.25
"""How many times longer than said before a training has to become, to say so."""

SAMPLE_SECONDS = 5.0
"""The seconds between two samples on the screen. All are in samples.jsonl."""


def describe_evaluation(record: Record) -> str:
    """Return the means of an evaluation in words."""
    return f"{format_loss(record)}{format_extra_metrics(record)}"


class TrainingScreen(Callback):
    """Reports a training run on standard error: live on a terminal, in plain lines elsewhere."""

    def __init__(
        self,
        budget_seconds: float | None,
        unit: str,
        describe: Callable[[Record], str] = describe_evaluation,
    ):
        self.budget, self.unit, self._describe = budget_seconds, unit, describe
        self.plan: HasTotalSteps | None = None
        self._expected_seconds = budget_seconds or 0.0
        self.speed, self.valid = 0.0, math.nan
        self._terms = ""
        """The means of the terms beside the loss in the last step, in words."""
        self._live = is_live()
        self._last_line = time.monotonic()
        self._last_sample, self._skipped_sample = -math.inf, ""
        step, loss = (
            TextColumn("step {task.fields[step]}"),
            TextColumn("loss [bold]{task.fields[loss]}[/]"),
        )
        held_out = TextColumn("held out [bold]{task.fields[valid]}[/]")
        bar, left = BarColumn(24), TimeLeftColumn()
        speed, memory = TextColumn("{task.fields[speed]}"), TextColumn("{task.fields[memory]}")
        self._progress = new_progress(
            (step, bar, loss, held_out, speed, memory, left),
            droppable=(memory, speed, bar, held_out, loss),
        )
        self._bar = self._progress.add_task(
            "", total=1.0, step="0", loss="-", valid="-", speed="", memory="", left=""
        )

    def __enter__(self) -> "TrainingScreen":
        if self._live:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._progress.stop()
        self._print_sample(self._skipped_sample)
        self._skipped_sample = ""

    def on_start(self, info: TrainingInfo) -> None:
        self.plan = info.plan
        for line in info.damaged:
            STDERR.print_wrapped(Text(escape_controls(line), style="yellow"))

    def on_plan(self, plan: HasTotalSteps) -> None:
        self.plan = plan

    def on_step(self, record: Record) -> None:
        self._say_if_over_budget(record)
        self._terms = "".join(f"  {name} {mean:.3g}" for name, mean in record.get("terms", {}).items())
        done, step = self._fraction_done(record)
        self.speed = (
            record["tokens_per_second"]
            if not self.speed
            else (0.95 * self.speed + 0.05 * record["tokens_per_second"])
        )
        left = record["seconds_left"]
        time_left = "" if left is None else f"{format_duration(left)} left"
        speed, memory = f"{self.speed:,.0f} {self.unit}/s", f"{peak_memory() / 1e9:.1f} GB"
        if self._live:
            self._progress.update(
                self._bar,
                completed=done or 0.0,
                step=step,
                loss=f"{record['loss']:.3f}",
                valid=f"{self.valid:.3f}" if math.isfinite(self.valid) else "-",
                speed=speed,
                memory=memory,
                left=time_left,
            )
        elif time.monotonic() > self._last_line + 10:
            self._last_line = time.monotonic()
            STDERR.print(f"step {step}  loss {record['loss']:.3f}  {speed}  {memory}  {time_left}")

    def on_skipped_step(self, record: Record) -> None:
        problem = f"step {record['step']}: skipped: numbers in {record['culprit']} are not finite"
        STDERR.print_wrapped(Text(problem, style="red"))

    def on_evaluating(self, index: int, total: int) -> None:
        if self._live:
            self._progress.update(self._bar, speed=f"evaluating {index:,}/{total:,}")
        elif time.monotonic() > self._last_line + 10:
            self._last_line = time.monotonic()
            STDERR.print(f"evaluating {index:,}/{total:,}")

    def on_evaluation(self, record: Record) -> None:
        self.valid, best_step = record["loss"], record["best_step"]
        is_best = best_step in (None, record["step"])
        mark = "" if is_best else f"  [yellow]not better since step {best_step}[/]"
        scores = f"held out {self._describe(record)}{mark}{self._terms}"
        STDERR.print_wrapped(Text.from_markup(f"[bold]step {record['step']}[/]  {scores}"))

    def on_sample(self, step: int, text: str) -> None:
        if time.monotonic() < self._last_sample + SAMPLE_SECONDS:
            self._skipped_sample = text
            return
        self._last_sample, self._skipped_sample = time.monotonic(), ""
        if step == 0:
            STDERR.print("[bold]step 0[/]  before training")
        self._print_sample(text)

    def _print_sample(self, text: str) -> None:
        for line in text.splitlines()[:4]:
            STDERR.print_wrapped(Text(escape_controls(f"    {_fit_preview(line)}"), style="italic"), 4)

    def try_outputs(self, try_outputs: Callable[[], float]) -> float:
        """Return the result of a trial of the test's outputs, and say meanwhile what is done."""
        if self._live:
            self._progress.update(self._bar, speed="trying the test's outputs")
            return try_outputs()
        with Activity("trying the test's outputs, for the time left"):
            return try_outputs()

    def on_end(self, record: Record) -> None:
        if record["reason"] == "patience":
            best_step = record["best_step"]
            STDERR.print(f"stopped early at step {record['step']}: no progress since step {best_step}")

    def _fraction_done(self, record: Record) -> tuple[float | None, str]:
        step = record["step"]
        if self.plan is not None:
            return step / self.plan.total_steps, f"{step:,}/{self.plan.total_steps:,}"
        return (record["seconds"] / self.budget if self.budget else None), f"{step:,}"

    def _say_if_over_budget(self, record: Record) -> None:
        """Say if the steps of a time budget, once planned, take much longer than planned."""
        left = record["seconds_left_in_steps"]
        if self.budget is None or self.plan is None or left is None:
            return
        expected = record["seconds"] + left
        if expected > OVERRUN * self._expected_seconds:
            self._expected_seconds = expected
            STDERR.print_wrapped(
                f"slower than when the steps were planned: the budget of {format_duration(self.budget)} "
                f"becomes about {format_duration(expected)} (Ctrl-C keeps all that is trained)"
            )


def _fit_preview(line: str) -> str:
    """Return a line of a preview. If the line is too long, both sides of the arrow are cut."""
    if len(line) <= PREVIEW_WIDTH:
        return line
    sides = line.split(" -> ", 1)
    return " -> ".join(truncate(side, PREVIEW_WIDTH // len(sides)) for side in sides)
