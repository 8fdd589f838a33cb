"""`foveal train DATA`: from data on disk to a trained run."""

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from foveal.commands.training_cost import TrainingCost, measure_cost
from foveal.commands.training_report import train_and_report
from foveal.config import parse_overrides
from foveal.core.errors import UserError
from foveal.core.runtime import has_fast_bfloat16, keep_freed_memory, resolve_device
from foveal.core.signals import SignalHandler
from foveal.data.core.prepared_data import NO_REUSE, PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.images.image_examples import ImageExamples
from foveal.data.open import DataPaths, open_data
from foveal.inspection.contact_sheet import contact_sheet
from foveal.store import durable
from foveal.store.run import (
    Run,
    RunExistsError,
    check_outside_data,
    check_run_path,
    default_run_path,
    next_run_path,
)
from foveal.tasks.base import Task
from foveal.tasks.configure import choose_training, column_settings, encoding_setting
from foveal.tasks.data_init import data_dependent_init
from foveal.tasks.infer import describe_task
from foveal.tasks.published_run import is_published, published_run
from foveal.tasks.read_settings import config_to_toml
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model, new_run, open_logged, resolve_config
from foveal.tasks.warm_start import processors_to_reuse, warm_start
from foveal.training.plan import limit_warmup, parse_budget
from foveal.ui.activity import Activity
from foveal.ui.console import log, print_facts, print_plain
from foveal.ui.progress_bar import ProgressBar

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
    start = None if from_ is None else _open_base_run(from_)
    with Activity(f"looking at {data}"):
        opened = open_data(data, log, encoding_setting(overrides))
        config, preset, base_run, defaults = choose_training(
            opened, overrides, task, model, start, budget, pretrained == "auto", log
        )
        named, task_origin = column_settings(overrides), _task_origin(task, model, from_)
        taken = [*describe_task(opened, named, type(task_of(config)), task_origin)]
    if defaults is not None:
        taken += [line for line in (str(defaults) if defaults.reason else "", defaults.advice) if line]
    if print_config:
        _print_choices(taken)
        print_plain(config_to_toml(config), end="")
        return
    torch_device = resolve_device(device)
    config = resolve_config(config, torch_device)
    origin_name = model or (from_ or Path(defaults.weights if base_run and defaults else preset)).name
    folder = run or default_run_path(data, origin_name)
    check_run_path(folder)
    check_outside_data(folder, data, valid, test)
    with SignalHandler() as signals:
        paths, bound_task = DataPaths(opened, valid, test), task_of(config)
        processor, reused = (
            (None, NO_REUSE) if base_run is None else processors_to_reuse(base_run, bound_task)
        )
        with Activity(f"reading {data}"):
            prepared = bound_task.bind(processor).prepare(paths, log, reused)
        keep_freed_memory()
        bound_task = bound_task.bind(prepared.processor)
        bound_task = bound_task.bind(prepared.processor, build_model(bound_task, torch_device))
        _check_held_out(bound_task, prepared, paths)
        fitted = data_dependent_init(bound_task, prepared, reused=base_run is not None)
        origin = preset if base_run is None else _fill_from_run(bound_task, base_run)
        with ProgressBar("features", before="features") as progress:
            fitted |= bound_task.fit_head(prepared.train, progress)
        with Activity("measuring a step"):
            cost = measure_cost(bound_task, prepared)
        bound_task = _shorten_warmup(bound_task, cost.total_steps, overrides)
        _print_choices(taken)
        _print_setup(data, bound_task, origin, folder, prepared, cost)
        first_weights = bound_task.model if fitted or base_run is not None else None
        device_name = str(torch_device)
        while True:
            try:
                started_run = new_run(folder, bound_task, prepared, paths, preset, device_name, first_weights)
                break
            except RunExistsError:
                if run is not None:
                    raise
                folder = next_run_path(folder)
                log(f"another process has just created that folder: this run is {folder}")
        if _has_images(prepared):
            _write_contact_sheet(folder, bound_task, prepared)
        train_and_report(started_run, bound_task, prepared, signals, json)


def _print_choices(lines: list[str]) -> None:
    """Print what was chosen for DATA, once nothing can be refused any more: a refusal is a single line."""
    for line in lines:
        log(line)


def _task_origin(task: str | None, model: str | None, from_: Path | None) -> str:
    """Return the option that names the task; empty if the task is inferred from DATA."""
    if task is not None:
        return "--task"
    return f"--model {model}" if model else f"--from {from_}" if from_ else ""


def _open_base_run(path: Path) -> Run:
    """Return the run at a path, or the run of published weights with that name.

    Raises: UserError: there is neither.
    """
    return (
        published_run(str(path), log) if is_published(str(path)) and not path.exists() else open_logged(path)
    )


def _check_held_out(task: Task, prepared: PreparedData[Any, Any], paths: DataPaths) -> None:
    """Check that the held-out splits are large enough for batches, before anything is written.

    Raises: UserError: a split is too small.
    """
    for split in ("valid", "test"):
        if (split_data := getattr(prepared, split)) is not None:
            try:
                task.eval_batches(split_data)
            except UserError as error:
                raise UserError(f"{getattr(paths, split) or paths.data}: {error}") from None


def _fill_from_run(task: Task, base_run: Run) -> str:
    """Fill the task's model with weights of an earlier run. Return in words which weights these are."""
    if warm_start(base_run, task):
        return f"all weights of {base_run.path}"
    return f"the encoder of {base_run.path}; the head is new"


def _write_contact_sheet(folder: Path, task: Task, prepared: PreparedData[Any, Any]) -> None:
    """Write a figure of training images, as they are and as the model reads them."""
    batches, caption = task.train_batches(prepared.train), prepared.processor.target.caption
    sheet = contact_sheet(prepared.train.examples, batches, caption)
    durable.atomic_write(folder / CONTACT_SHEET_FILE, sheet)


def _has_images(prepared: PreparedData[Any, Any]) -> bool:
    """Return whether a contact sheet can show the training data."""
    return isinstance(prepared.train, SplitData) and isinstance(prepared.train.examples, ImageExamples)


def _shorten_warmup(task: Task, total_steps: int, overrides: tuple[str, ...]) -> Task:
    """Return the task with a warm-up of at most a tenth of the steps, unless the user sets the warm-up."""
    schedule = task.config.schedule
    shorter = limit_warmup(schedule, total_steps)
    timed = parse_budget(task.config.training.budget).unit == "seconds"
    if not total_steps or shorter == schedule or (schedule.name == "one-cycle" and not timed):
        return task
    setting = f"schedule.warmup_steps={schedule.warmup_steps}"
    if "warmup_steps" in parse_overrides(overrides).get("schedule", {}):
        if total_steps < 2 * schedule.warmup_steps:
            log(f"about {total_steps:,} steps, and {schedule.warmup_steps} of them are warm-up, as set")
        return task
    log(f"about {total_steps:,} steps: {shorter.warmup_steps} of them are warm-up; else {setting}")
    return task.with_config(task.config.model_copy(update={"schedule": shorter}))


def _print_setup(
    data: str, task: Task, origin: str, folder: Path, prepared: PreparedData[Any, Any], cost: TrainingCost
) -> None:
    """Print data, task, model and cost before the training."""
    config, network, facts = task.config, task.model, prepared.facts["parts"]
    summary = task.summarize(prepared)
    parts = ", ".join(f"{name} {task.describe_size(part)}" for name, part in facts.items())
    outcomes = summary.num_outcomes
    expected = "" if outcomes is None else f"; ln {outcomes} = {math.log(outcomes):.3f} expected"
    skipped = [("skipped", _skipped_summary(prepared, folder))] if prepared.skipped else []
    images = [("images", f"{folder / CONTACT_SHEET_FILE}: as they are, and as the model reads them")]
    print_facts(
        [
            ("data", f"{data}: {summary.data}: {parts}"),
            *skipped,
            ("task", summary.task),
            ("model", f"{origin}: {_model_summary(task)}"),
            ("first loss", f"{cost.first_loss:.3f} {task.first_loss_unit} measured{expected}"),
            ("cost", cost.summary(summary.unit)),
            *(images if _has_images(prepared) else []),
            ("run", f"{folder}  (budget {config.training.budget}, {config.training.precision})"),
        ]
    )
    if config.training.precision == "bfloat16" and not has_fast_bfloat16(next(network.parameters()).device):
        log("this machine has no fast bfloat16: training.precision=float32 is several times faster")


def _skipped_summary(prepared: PreparedData[Any, Any], folder: Path) -> str:
    """Return the number of skipped rows, the file that lists them, and the first."""
    first, count = prepared.skipped[0], len(prepared.skipped)
    return f"{count:,} rows, all in {folder / 'skipped.jsonl'}; the first: {first.location}: {first.reason}"


def _model_summary(task: Task) -> str:
    """Return the components of the model and the number of parameters."""
    network = task.model
    parameters = sum(parameter.numel() for parameter in network.parameters())
    trained = sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)
    partly = f", {trained:,} of them trained" if trained < parameters else ""
    return f"{', '.join(map(str, task.components()))}; {parameters:,} parameters{partly}"
