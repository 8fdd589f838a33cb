"""`foveal train DATA`: from data on disk to a trained run."""

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from foveal.api.training_cost import TrainingCost, measure_cost
from foveal.api.training_report import eval_batches, train_and_report
from foveal.api.training_start import TrainingStart, create_run, prepare_training
from foveal.config import parse_overrides
from foveal.core.errors import UserError
from foveal.core.runtime import has_fast_bfloat16, resolve_device
from foveal.core.signals import SignalHandler
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.images.image_examples import ImageExamples
from foveal.data.open import DataPaths, OpenedData, open_data
from foveal.inspection.contact_sheet import contact_sheet
from foveal.store import durable
from foveal.store.cache import shorten_unpacked_paths
from foveal.store.run import RunFolder, check_outside_data, check_run_path, default_run_path
from foveal.tasks.base import Task
from foveal.tasks.configure import TrainingChoice, choose_training, encoding_setting
from foveal.tasks.infer import describe_named_task
from foveal.tasks.published_run import is_published, published_run
from foveal.tasks.read_settings import config_to_toml
from foveal.tasks.registry import task_of
from foveal.tasks.session import open_logged, resolve_config
from foveal.training.plan import limit_warmup, parse_budget
from foveal.ui.activity import Activity
from foveal.ui.console import log, print_facts, print_plain

CONTACT_SHEET_FILE = "contact_sheet.png"


def train(
    data: str,
    /,
    *overrides: str,
    task: str | None = None,
    model: str | None = None,
    from_: Annotated[Path | None, Parameter(name="--from")] = None,
    valid: str | None = None,
    test: str | None = None,
    run: Path | None = None,
    budget: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    pretrained: Literal["auto", "no"] = "auto",
    device: str = "auto",
    print_config: Annotated[bool, Parameter(negative="")] = False,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Train a model on DATA: text, pairs, labeled texts, series or images, captions, or a named data set.

    Parameters
    ----------
    data
        An existing path (any text, a folder of texts, a table .jsonl .csv .tsv .parquet, .conllu .conll, a
        folder of recordings with metadata.csv, series .ts .npz, a folder or zip of images by class or with
        metadata.csv), or two aligned files such as `a.en,b.de`, or a name from `foveal data list`.
    overrides
        Settings in place of the preset's: key.sub=value, such as model.width=256 optimizer.lr=1e-3; the
        columns of a table are data.text, data.label, data.source, data.target.
    task
        What to learn; if not given, the model's task, or the one that fits DATA and the named columns.
    model
        A preset or network from `foveal models`, or the path of a TOML file; if not given, the task's own, or
        the model of --from.
    from_
        A run whose weights and tokenizer to start from, or published weights: minilm or lite0; for another
        task or other labels only its encoder.
    valid
        Held-out data that selects the best weights; nothing is then split off from DATA.
    test
        Held-out data for the reported score; nothing is then split off from DATA.
    run
        The folder to create; runs/DATA-MODEL-N if not given.
    budget
        How long to train: 90s, 3m, 2h, 2000steps, 5epochs, 10Mtokens.
    pretrained
        auto starts from published weights where DATA are few, and fetches them once; no never does.
    device
        cpu, cuda, or auto.
    print_config
        Print the settings of this training with their meanings as TOML, which --model takes; train nothing.
    json
        Print one JSON object with the result on standard output.
    """
    if print_config and json:
        raise UserError("--print-config prints TOML: leave out --json")
    start_from = None if from_ is None else _open_base_run(from_)
    with Activity(f"looking at {data}"):
        opened = open_data(data, log, encoding_setting(overrides))
        choice = choose_training(
            opened, overrides, task, model, start_from, budget, pretrained == "auto", log
        )
    paths = DataPaths(opened, valid, test)
    choices = _choices(paths, opened, choice, task is not None, model, from_)
    if print_config:
        _log_lines(choices)
        print_plain(config_to_toml(choice.config), end="")
        return
    torch_device = resolve_device(device)
    bound_task = task_of(resolve_config(choice.config, torch_device))
    folder = run or default_run_path(data, _origin_name(choice, model, from_))
    check_run_path(folder)
    check_outside_data(folder, data, valid, test)
    with SignalHandler() as signals:
        start = prepare_training(bound_task, choice.preset, choice.base_run, paths, torch_device)
        with Activity("measuring a step"):
            batches = start.task.train_batches(start.prepared.train)
            valid_batches = eval_batches(start.task, start.prepared.valid)
            cost = measure_cost(start.task, start.prepared, batches, valid_batches)
        if cost.steps is not None:
            shorter, warmup = _shorten_warmup(start.task, cost.steps.total_steps, overrides)
            start, choices = start.with_task(shorter), choices + warmup
        _log_lines(choices)
        _print_setup(data, start, folder, cost)
        new_run = create_run(folder, run is None, start, paths, choice.preset, str(torch_device))
        if _has_images(start.prepared):
            with Activity("drawing the contact sheet"):
                _write_contact_sheet(new_run.path, start.task, start.prepared)
        train_and_report(new_run, start.task, start.prepared, batches, valid_batches, signals, json)


def _choices(
    paths: DataPaths,
    data: OpenedData,
    choice: TrainingChoice,
    names_task: bool,
    model: str | None,
    from_: Path | None,
) -> list[str]:
    """Return lines that tell what was chosen for DATA, and why."""
    task = task_of(choice.config)
    if choice.inferred is not None:
        lines = [str(choice.inferred)]
    else:
        origin = "--task" if names_task else f"--model {model}" if model else f"--from {from_}"
        lines = [describe_named_task(data, type(task), origin)]
    if data.kind not in ("aligned", "missing"):
        replaced = {"valid": paths.valid, "test": paths.test}
        used = [split for split in task.labeled_splits(data) if replaced.get(split) is None]
        if splits := str(data.found_splits.only(used)):
            lines.append(f"splits: {splits}")
    if (defaults := choice.defaults) is not None:
        lines += [line for line in (str(defaults) if defaults.reason else "", defaults.advice) if line]
    return lines


def _log_lines(lines: list[str]) -> None:
    """Log what was chosen for DATA, once nothing can be refused any more: a refusal is a single line."""
    for line in lines:
        log(line)


def _origin_name(choice: TrainingChoice, model: str | None, from_: Path | None) -> str:
    """Return the name of what the training starts from, for the name of the run."""
    if model or from_:
        return model or Path(from_ or "").name
    defaults = choice.defaults
    return Path(defaults.weights if choice.base_run and defaults else choice.preset).name


def _open_base_run(path: Path) -> RunFolder:
    """Return the run at a path, or the run of published weights with that name.

    Raises: UserError: there is neither.
    """
    return (
        published_run(str(path), log) if is_published(str(path)) and not path.exists() else open_logged(path)
    )


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


def _print_setup(data: str, start: TrainingStart, folder: Path, cost: TrainingCost) -> None:
    """Print data, task, model and cost before the training."""
    task, prepared = start.task, start.prepared
    training, facts, summary = task.config.training, prepared.facts["parts"], task.summarize(prepared)
    if note := task.held_out_note(facts):
        log(f"held out: {note}")
    parts = ", ".join(f"{name} {task.describe_size(part)}" for name, part in facts.items())
    rows = [("data", f"{data}: {summary.data}: {parts}")]
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
    return f"{count:,} rows, all in {folder / 'skipped.jsonl'}; the first: {where}: {first.reason}"


def _model_summary(task: Task) -> str:
    """Return the components of the model and the number of parameters."""
    network = task.model
    parameters = sum(parameter.numel() for parameter in network.parameters())
    trained = sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)
    partly = f", {trained:,} of them trained" if trained < parameters else ""
    return f"{', '.join(map(str, task.components()))}; {parameters:,} parameters{partly}"
