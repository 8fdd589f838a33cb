"""A training from the user's options to the trained run: choose, prepare, create the run, train, report."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveal.api.training.choose import ChosenTraining
from foveal.api.training.cost import TrainingCost, measure_cost
from foveal.api.training.follow import start_new
from foveal.api.training.parts import TrainingParts, eval_batches
from foveal.api.training.report import train_and_report
from foveal.api.training.start import TrainingStart, create_run, prepare_training
from foveal.config import parse_overrides
from foveal.core.rank_device import name_for_run
from foveal.core.runtime import has_fast_bfloat16, reset_peak_memory, resolve_device
from foveal.core.signals import SignalHandler
from foveal.core.terminal_text import counted
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.images.image_examples import ImageExamples
from foveal.distributed.world import ONE_PROCESS, World
from foveal.inspection.contact_sheet import contact_sheet
from foveal.store import durable
from foveal.store.cache import shorten_unpacked_paths
from foveal.store.run import RunFolder, check_outside_data, check_run_path
from foveal.store.run_paths import default_run_path
from foveal.tasks.base import Task
from foveal.tasks.registry import task_of
from foveal.tasks.session import resolve_config
from foveal.training.agreement import Agreement
from foveal.training.loggers.registry import check_loggers, make_loggers
from foveal.training.plan import limit_warmup, parse_budget
from foveal.training.protocols import Batches
from foveal.training.slots import describe_slots
from foveal.ui.activity import Activity
from foveal.ui.console import log, print_facts

CONTACT_SHEET_FILE = "contact_sheet.png"


@dataclass(frozen=True)
class PreparedTraining:
    """A training that is ready to begin: its data are read, and a first step was measured."""

    chosen: ChosenTraining
    start: TrainingStart
    batches: Batches
    valid_batches: Batches | None
    cost: TrainingCost
    lines: list[str]
    """What was chosen, and why."""
    folder: Path
    """The folder of the run, which another process may still take."""
    device: str

    def announce(self, draws_images: bool) -> None:
        """Print what was chosen, and data, task, model and cost. `draws_images` says whether `run` comes
        next, which draws a contact sheet of images."""
        log_lines(self.lines)
        sheet = (
            self.folder / CONTACT_SHEET_FILE if draws_images and _has_images(self.start.prepared) else None
        )
        slots = self.start.task.config.training.slots
        cut = "" if slots == 1 else describe_slots(slots, self.batches.batch(0, 0))
        _print_setup(self.chosen.data, self.start, self.folder, self.cost, sheet, cut)

    def to_json(self) -> dict[str, Any]:
        """Return what was chosen and what the training would cost."""
        task, steps = self.start.task, self.cost.steps
        result = {
            "data": self.chosen.data,
            "task": task.name,
            "origin": self.start.origin,
            "reasons": self.lines,
            "run": str(self.folder),
            "parts": self.start.prepared.facts["parts"],
            "parameters": sum(parameter.numel() for parameter in task.model.parameters()),
            "memory_bytes": self.cost.memory_bytes,
            "steps": 0 if steps is None else steps.total_steps,
        }
        return result | ({} if steps is None else {"seconds": steps.seconds, "first_loss": steps.first_loss})

    def create_run(self, number_columns: Collection[str] = ()) -> RunFolder:
        """Create the folder of the run, with a contact sheet of its images.

        `number_columns` are the columns of values in memory that are numbers or truth values. Labels from one
        of these are answered as such.
        """
        chosen, start = self.chosen, self.start
        may_rename = chosen.options.run is None
        has_number_labels = start.task.label_column in number_columns
        run = create_run(
            self.folder,
            may_rename,
            start,
            chosen.paths,
            chosen.choice.preset,
            self.device,
            has_number_labels,
        )
        if _has_images(start.prepared):
            with Activity("drawing the contact sheet"):
                _write_contact_sheet(run.path, start.task, start.prepared)
        return run

    def train(
        self,
        run: RunFolder,
        signals: SignalHandler,
        on_result: Callable[[dict[str, Any]], None],
        callbacks: Sequence[Any] = (),
        world: World = ONE_PROCESS,
    ) -> None:
        """Train and report a new run. `on_result` is called with the scores, `callbacks` with all events. The
        other ranks of the `world` follow. If they can't, the run is removed.

        Raises: RankLost: another rank can't open the run, and says why.
        """
        start_new(Agreement(world, signals), run)
        start, loggers = self.start, make_loggers(self.chosen.options.log, run.path)
        parts = TrainingParts(run, start.task, start.prepared, self.batches, self.valid_batches)
        train_and_report(parts, signals, on_result, [*callbacks, *loggers], world)


def prepare(chosen: ChosenTraining) -> PreparedTraining:
    """Read the data, build the model, and measure a step.

    Raises: UserError: the data can't be read, do not fit the model, or the run can't be created.
    """
    choice, options, data = chosen.choice, chosen.options, chosen.data
    reset_peak_memory()  # an earlier training of this process may have taken more
    check_loggers(options.log)
    lines = chosen.lines()
    device = resolve_device(options.device)
    task = task_of(resolve_config(choice.config, device))
    folder = options.run or default_run_path(data, chosen.origin_name)
    check_run_path(folder)
    check_outside_data(folder, data, options.valid, options.test)
    start = prepare_training(task, choice.preset, choice.base_run, chosen.paths, device)
    with Activity("measuring a step"):
        batches = start.task.train_batches(start.prepared.train)
        valid_batches = eval_batches(start.task, start.prepared.valid)
        cost = measure_cost(start.task, start.prepared, batches, valid_batches)
    if cost.steps is not None:
        shorter, warmup = _shorten_warmup(start.task, cost.steps.total_steps, chosen.overrides)
        start, lines = start.with_task(shorter), lines + warmup
    return PreparedTraining(chosen, start, batches, valid_batches, cost, lines, folder, name_for_run(device))


def log_lines(lines: list[str]) -> None:
    """Log what was chosen for DATA, once nothing can be refused any more: a refusal is a single line."""
    for line in lines:
        log(line)


def _write_contact_sheet(folder: Path, task: Task, prepared: PreparedData[Any, Any]) -> None:
    """Write a figure of training images, as they are and as the model reads them."""
    batches, caption = task.train_batches(prepared.train), prepared.processor.target.caption
    sheet = contact_sheet(prepared.train.examples, batches, caption)
    durable.atomic_write(folder / CONTACT_SHEET_FILE, sheet)


def _has_images(prepared: PreparedData[Any, Any]) -> bool:
    """Return whether a contact sheet can show the training data."""
    return isinstance(prepared.train, SplitData) and isinstance(prepared.train.examples, ImageExamples)


def _shorten_warmup(task: Task, total_steps: int, overrides: tuple[str, ...]) -> tuple[Task, list[str]]:
    """Return the task with a warm-up of at most a tenth of the steps, unless the user sets the warm-up.

    Return also lines for the user about the warm-up, if there is something to say.
    """
    schedule = task.config.schedule
    shorter = limit_warmup(schedule, total_steps)
    timed = parse_budget(task.config.training.budget).unit == "seconds"
    if not total_steps or shorter == schedule or (schedule.name == "one-cycle" and not timed):
        return task, []
    rises = f"of about {total_steps:,} steps the learning rate rises in the first"
    if "warmup_steps" in parse_overrides(overrides).get("schedule", {}):
        line = f"{rises} {schedule.warmup_steps:,}, as set by schedule.warmup_steps"
        return task, [line] if total_steps < 2 * schedule.warmup_steps else []
    setting = f"schedule.warmup_steps={schedule.warmup_steps}"
    line = f"{rises} {shorter.warmup_steps:,}, a tenth at most (warm-up); else {setting}"
    shortened = task.with_config(task.config.model_copy(update={"schedule": shorter}))
    return shortened, [line] if shorter.warmup_steps else []


def _print_setup(
    data: str, start: TrainingStart, folder: Path, cost: TrainingCost, sheet: Path | None, slots: str
) -> None:
    """Print data, task, model and cost before the training, and the path of the contact sheet and the slots
    of a batch if there are any."""
    task, prepared = start.task, start.prepared
    training, facts, summary = task.config.training, prepared.facts["parts"], task.summarize(prepared)
    if note := task.held_out_note(facts):
        log(f"held out: {note}")
    parts = ", ".join(f"{name} {task.describe_size(part)}" for name, part in facts.items())
    rows = [("data", f"{shorten_unpacked_paths(data)}: {summary.data}: {parts}")]
    if prepared.skipped:
        rows.append(("skipped", _skipped_summary(prepared, folder)))
    rows += [("task", summary.task), ("model", f"{start.origin}: {_model_summary(task)}")]
    if start.fit is not None:
        rows.append(("fit", str(start.fit)))
    if cost.steps is not None:
        outcomes = None if start.knows_outcomes else summary.num_outcomes
        expected = "" if outcomes is None else f"; ln {outcomes} = {math.log(outcomes):.3f} expected"
        loss = f"{cost.steps.first_loss:.3f} {task.first_loss_unit} measured{expected}"
        rows.append(("first loss", loss))
    rows.append(("cost", cost.summary(summary.unit)))
    if slots:
        rows.append(("slots", slots))
    if _has_images(prepared):
        rows.append(("images", f"{folder / CONTACT_SHEET_FILE}: as they are, and as the model reads them"))
    rows.append(("run", f"{folder}  ({_budget_in_words(start)}, {training.precision})"))
    print_facts(rows)
    if training.precision == "bfloat16" and not has_fast_bfloat16(next(task.model.parameters()).device):
        log("this machine has no fast bfloat16: training.precision=float32 is several times faster")


def _budget_in_words(start: TrainingStart) -> str:
    """Return how long the training takes, as the user or the preset says."""
    budget = start.task.config.training.budget
    if parse_budget(budget).amount:
        return f"budget {budget}"
    return f"budget {budget}: trains nothing" if start.fit is None else "fitted at once, no training steps"


def _skipped_summary(prepared: PreparedData[Any, Any], folder: Path) -> str:
    """Return the number of skipped rows, the file that lists them, and the first."""
    first, count = prepared.skipped[0], len(prepared.skipped)
    where = shorten_unpacked_paths(first.location)
    return f"{counted(count, 'row')}, all in {folder / 'skipped.jsonl'}; the first: {where}: {first.reason}"


def _model_summary(task: Task) -> str:
    """Return the components of the model and the number of parameters."""
    network = task.model
    parameters = sum(parameter.numel() for parameter in network.parameters())
    trained = sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)
    partly = f", {trained:,} of them trained" if trained < parameters else ""
    return f"{', '.join(map(str, task.components()))}; {parameters:,} parameters{partly}"
