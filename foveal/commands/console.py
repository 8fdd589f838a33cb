"""What a person sees while training: decisions, live progress, samples, and the picture at the end."""

import math
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from foveal.core.errors import UserError
from foveal.training.plan import Plan

ERROR = Console(stderr=True, highlight=False)
"""Everything but results goes to standard error."""
OUTPUT = Console(highlight=False)
PREVIEW = 144
"""Characters of a line of a preview on the screen, where it then takes two."""


def say(message: str) -> None:
    """One line that says what is being done or was decided."""
    ERROR.print(Text(message, style="dim"), soft_wrap=True)


def check_picture(out: Path | None) -> None:
    """Raise UserError for a name that can't be that of a drawing."""
    if out is not None and out.suffix.lower() != ".png":
        raise UserError(f"{out}: expected a name that ends in .png")


def facts_table(rows: list[tuple[str, str]], console: Console = ERROR) -> None:
    """Names and values, aligned; lines are left whole, so that commands can be copied from them."""
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        console.print(Text.assemble((name.ljust(width), "bold cyan"), "  ", value), soft_wrap=True)


def result_line(result: dict[str, Any]) -> None:
    """The object that `--json` promises, on standard output."""
    import json

    clean = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in result.items()}
    print(json.dumps(clean), file=sys.stdout, flush=True)


def tell_each(run: Path, name: str, found: list[dict[str, Any]], out: Path | None, json: bool) -> None:
    """A table for each of what was found in a run, where nothing is None, and where the picture of them lies;
    or one object with all of them under `name`."""
    if json:
        result_line({"run": str(run), name: found} | ({} if out is None else {"picture": str(out)}))
        return
    for one in found:
        facts_table([(field, str(value)) for field, value in one.items() if value is not None], OUTPUT)
    if out is not None:
        facts_table([("picture", str(out))], OUTPUT)


def shortened(text: str, most: int) -> str:
    """At most so many characters of a text."""
    return text if len(text) <= most else f"{text[: most - 4]} ..."


def loss_of(scores: dict[str, Any], per: str = "") -> str:
    """The loss with its unit: nats, each of what it is `per`; or what is missed of a reward of 1."""
    return f"{scores['loss']:.4f} {'of the reward missed' if 'reward' in scores else f'nats{per}'}"


def besides(scores: dict[str, Any]) -> str:
    """What there is beside the loss, to be told behind it."""
    bits = scores.get("bits_per_character")
    told = "" if bits is None else f", {bits:.4f} bits per character"
    shares = (f", {name} {100 * scores[name]:.1f} %" for name in ("accuracy", "success") if name in scores)
    return told + "".join(shares)


def duration(seconds: float) -> str:
    """`under 1 s`, `45 s`, `2:05`, `1:02:05`."""
    if 0 < seconds < 1:
        return "under 1 s"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def size(count: int) -> str:
    """`1.2 GB (1.1 GiB)`; both units, because they are mixed up so often."""
    for power, unit, binary in ((3, "GB", "GiB"), (2, "MB", "MiB"), (1, "kB", "KiB")):
        if count >= 1000**power:
            return f"{count / 1000**power:,.1f} {unit} ({count / 1024**power:,.1f} {binary})"
    return f"{count} B"


class Left(ProgressColumn):
    """Time left: by the budget until it is a plan, then by steps."""

    def render(self, task: Task) -> Text:
        return Text(str(task.fields["left"]), style="cyan")


class Screen:
    """Reports a training run on standard error: live on a terminal, in plain lines elsewhere."""

    def __init__(self, budget_seconds: float | None, unit: str):
        self.budget, self.unit = budget_seconds, unit
        self.plan: Plan | None = None
        self.speed, self.valid = 0.0, math.nan
        self._live = ERROR.is_terminal
        self._last_line = time.monotonic()
        self._progress = Progress(
            TextColumn("step {task.fields[step]}"),
            BarColumn(24),
            TextColumn("loss [bold]{task.fields[loss]}[/]"),
            TextColumn("held out [bold]{task.fields[valid]}[/]"),
            TextColumn("{task.fields[speed]}"),
            Left(),
            console=ERROR,
            transient=True,
        )
        self._bar = self._progress.add_task("", total=1.0, step="0", loss="-", valid="-", speed="", left="")

    def __enter__(self) -> "Screen":
        if self._live:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._progress.stop()

    def started(self, step: int, plan: Plan | None, damaged: list[str]) -> None:
        self.plan = plan
        for line in damaged:
            ERROR.print(Text(line, style="yellow"), soft_wrap=True)

    def planned(self, plan: Plan) -> None:
        self.plan = plan

    def step(self, record: dict[str, Any]) -> None:
        done, step = self._share(record)
        self.speed = (
            record["tokens_per_second"]
            if not self.speed
            else (0.95 * self.speed + 0.05 * record["tokens_per_second"])
        )
        left = "" if done is None else f"{duration(self._left(record, done))} left"
        pace = f"{self.speed:,.0f} {self.unit}/s"
        if self._live:
            self._progress.update(
                self._bar,
                completed=done or 0.0,
                step=step,
                loss=f"{record['loss']:.3f}",
                valid=f"{self.valid:.3f}" if math.isfinite(self.valid) else "-",
                speed=pace,
                left=left,
            )
        elif time.monotonic() > self._last_line + 10:
            self._last_line = time.monotonic()
            ERROR.print(f"step {step}  loss {record['loss']:.3f}  {pace}  {left}")

    def refused(self, record: dict[str, Any]) -> None:
        ERROR.print(f"[red]step {record['step']}: not applied: {record['culprit']}")

    def evaluated(self, record: dict[str, Any], best_step: int | None) -> None:
        self.valid = record["loss"]
        better = best_step in (None, record["step"])
        mark = "" if better else f"  [yellow]not better since step {best_step}[/]"
        told = f"held out {loss_of(record)}{besides(record)}{mark}"
        ERROR.print(f"[bold]step {record['step']}[/]  {told}", soft_wrap=True)

    def sample(self, step: int, text: str) -> None:
        if step == 0:
            ERROR.print("[bold]step 0[/]  before training")
        for line in text.splitlines()[:4]:
            ERROR.print(Text(f"    {_fitted(line)}", style="italic"), soft_wrap=True)

    def saved(self, step: int, path: Path) -> None:
        pass

    def finished(self, step: int, reason: str, best_step: int | None, best_loss: float | None) -> None:
        if reason == "patience":
            ERROR.print(f"stopped early at step {step}: no progress since step {best_step}")

    def _share(self, record: dict[str, Any]) -> tuple[float | None, str]:
        step = record["step"]
        if self.plan is not None:
            return step / self.plan.total_steps, f"{step:,}/{self.plan.total_steps:,}"
        return (record["seconds"] / self.budget if self.budget else None), f"{step:,}"

    def _left(self, record: dict[str, Any], done: float) -> float:
        return float(record["seconds"] / done - record["seconds"]) if done else 0.0


def _fitted(line: str) -> str:
    """A line of a preview; of one that is too long, each side of its arrow is cut."""
    if len(line) <= PREVIEW:
        return line
    sides = line.split(" -> ", 1)
    return " -> ".join(shortened(side, PREVIEW // len(sides)) for side in sides)
