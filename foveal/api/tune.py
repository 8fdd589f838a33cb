"""`foveal.tune`: the settings of a training, chosen in seven steps."""

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from foveal.api.arguments import one_or_several
from foveal.api.errors import plain_errors
from foveal.api.interruption import interruptible
from foveal.api.run import Run
from foveal.api.train import base_path
from foveal.api.training.choose import ChosenTraining, choose
from foveal.api.training.options import TrainingOptions
from foveal.api.training.prepare import log_lines, prepare
from foveal.api.training.stored import store_training
from foveal.config.old_names import flatten
from foveal.core.errors import UserError
from foveal.core.extras import check_installed
from foveal.core.signals import Interrupted, SignalHandler
from foveal.store.run_paths import default_run_path
from foveal.studies.report_files import write_report
from foveal.studies.trials.folder import open_study
from foveal.studies.trials.process import options_of_plugins
from foveal.studies.tune.checks import Cost, FirstModel, has_checks
from foveal.studies.tune.lengths import check_budget
from foveal.studies.tune.regularizers import is_regularizer
from foveal.studies.tune.report import tune_payload
from foveal.studies.tune.space import search_space
from foveal.studies.tune.subject import Subject
from foveal.studies.tune.tune import Tuning
from foveal.studies.tune.tune import tune as run_study
from foveal.tasks.registry import task_of
from foveal.training.plan import parse_budget
from foveal.ui.budget_bar import BudgetBar
from foveal.ui.console import log, silence

DEFAULT_BUDGET = "20m"
SLOW_START = 10.0
"""Seconds of a first start after which the time of a second one is measured."""
IMPORT_SECONDS = 3.0
"""The time before a process reads its data."""


@dataclass(frozen=True)
class TuneOptions:
    """What is asked of a study, beside the options of its trainings."""

    budget: str = DEFAULT_BUDGET
    search: tuple[str, ...] = ()
    run: Path | None = None

    @property
    def seconds(self) -> float:
        """The budget.

        Raises: UserError: it is no time.
        """
        budget = parse_budget(self.budget)
        if budget.unit != "seconds":
            raise UserError(f"--budget {self.budget}: the budget of a study is a time, such as 20m or 2h")
        return budget.amount


@plain_errors
def tune(
    data: Any,
    *,
    model: str | None = None,
    budget: str = DEFAULT_BUDGET,
    task: str | None = None,
    text: str | None = None,
    label: str | None = None,
    target: str | None = None,
    valid: Any = None,
    test: Any = None,
    start_from: str | Path | Run | None = None,
    search: str | Sequence[str] = (),
    lr: float | None = None,
    batch: int | None = None,
    seed: int | None = None,
    pretrained: Literal["auto", "no"] = "auto",
    device: str = "auto",
    run: str | Path | None = None,
    quiet: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> Tuning:
    """Choose the settings of a training on `data` in seven steps. `foveal tune` does the same.

    Raises: UserError: the data can't be read or have no held-out rows, a setting does not fit, or the budget
        is too small.
    Raises: RunFailed: all trials failed.

    Parameters
    ----------
    data, valid, test
        Data as for `foveal.train`: paths, names, or values in memory.
    model
        A preset or network, or the path of a TOML file; if not given, the one that fits the data.
    budget
        The time of the whole study, such as 20m.
    task
        What is to be learned; if not given, the task that fits the data.
    text, label, target
        The columns of texts (of sources if `target` is given), of labels, and of target texts.
    start_from
        A run to start from, or published weights: minilm or lite0.
    search
        The settings to search, such as "optimizer.lr"; all that usually matter if not given.
    lr
        The learning rate to start from.
    batch
        The images or series in a batch, or else the tokens, words or frames.
    seed
        The seed of the trials.
    pretrained
        "auto" starts from published weights where the data are few; "no" never does.
    device
        cpu, cuda, mps, or auto.
    run
        The folder of the study; runs/DATA-tune-N if not given. A study that was stopped goes on there.
    quiet
        Print nothing.
    settings
        The settings to start from, by their keys, such as `{"optimizer.lr": 0.1}`.
    """
    options = TrainingOptions(
        task=task,
        model=model,
        start_from=base_path(start_from),
        text=text,
        label=label,
        target=target,
        lr=lr,
        batch=batch,
        seed=seed,
        pretrained=pretrained,
        device=device,
    )
    own = TuneOptions(budget, one_or_several(search), None if run is None else Path(run))
    stored = store_training(data, valid, test, options, settings)
    with silence(quiet), interruptible() as signals:
        return tune_chosen(stored.data, stored.overrides, stored.options, own, signals)


def tune_chosen(
    data: str, overrides: tuple[str, ...], options: TrainingOptions, own: TuneOptions, signals: SignalHandler
) -> Tuning:
    """Tune the settings of the training that `foveal train` would begin.

    Raises: UserError or ConfigError: DATA can't be read, a setting does not fit, the budget is too small, or
        Optuna is not installed.
    Raises: RunFailed: all trials failed.
    Raises: Interrupted: a signal came; the study goes on with the same command.
    """
    check_installed("optuna", "foveal tune")
    seconds = own.seconds
    chosen = choose_trained(data, overrides, options)
    options = chosen.options
    subject = make_subject(chosen, overrides, options)
    folder = own.run or default_run_path(data, "tune")
    facts = {
        "data": data,
        "options": [*subject.options],
        "settings": subject.given,
        "budget": own.budget,
        "search": [*own.search],
    }

    log_lines(chosen.lines())
    search_space(subject.config, subject.config.optimizer.lr, own.search)  # a wrong name is said at once
    first = None
    if not has_checks(folder):
        first = first_model(chosen)
        check_budget(first.cost, seconds)
    if open_study(folder, "tune", facts, data, options.valid, options.test):
        log(f"{folder}: goes on")
    try:
        with BudgetBar("seconds of tuning") as progress:
            tuning = run_study(folder, subject, first, seconds, own.search, signals, log, progress)
        write_report(tune_payload(tuning), tuning.folder)
        return tuning
    except Interrupted as stop:
        words = ["foveal", "tune", data, *overrides, *options.words(), "--budget", own.budget]
        words += options_of_plugins()
        words += [word for each in own.search for word in ("--search", each)]
        command = shlex.join([*words, "--run", str(folder)])
        raise Interrupted(stop.number, f"; all trials are kept; go on with: {command}") from None


def choose_trained(data: str, overrides: tuple[str, ...], options: TrainingOptions) -> ChosenTraining:
    """Choose what is tuned: as for a training, but the preset of the task where the weights of the default
    for these data are computed, not trained.

    Raises: UserError or ConfigError: DATA can't be opened, or a setting does not fit.
    """
    chosen = choose(data, overrides, options)
    config = chosen.choice.config
    if chosen.choice.defaults is None or parse_budget(config.training.budget).amount:
        return chosen
    model = task_of(config).preset
    log(f"--model {model} is tuned: the weights of {chosen.choice.preset} are computed, not trained")
    return choose(data, overrides, replace(options, model=model))


def make_subject(chosen: ChosenTraining, overrides: tuple[str, ...], options: TrainingOptions) -> Subject:
    """Return what is tuned: the training that was chosen, and what its preset has in place of the settings
    that were given for the training."""
    trained = TrainingOptions(lr=options.lr, seed=options.seed)  # the others stand in the command as options
    texts = (*overrides, *trained.overrides())
    given = {key: value for key, _, value in (text.partition("=") for text in texts)}
    tunable = {key for key in given if is_tunable(key)}
    preset_values: dict[str, Any] = {}
    if tunable:
        others = tuple(text for text in overrides if text.partition("=")[0] not in tunable)
        preset = choose(chosen.data, others, replace(options, lr=None)).choice.config
        values, own = (dict(flatten(config.model_dump())) for config in (preset, chosen.choice.config))
        preset_values = {key: values[key] for key in given if key in tunable and values[key] != own[key]}
    config = chosen.choice.config
    return Subject(
        chosen.data,
        tuple(replace(options, lr=None, seed=None).words()),
        given,
        config,
        chosen.choice.preset,
        preset_values,
        config.training.budget,
    )


def is_tunable(key: str) -> bool:
    """Return whether a setting is one of the training or the regularization, not of the model or the data."""
    return key.startswith(("optimizer.", "schedule.")) or is_regularizer(key) or key == "model.initialization"


def first_model(chosen: ChosenTraining) -> FirstModel:
    """Read the data, and build the model that was chosen.

    Raises: UserError: there are no held-out rows to choose by, or nothing is trained in steps.
    """
    began = time.monotonic()
    prepared = prepare(chosen)
    if time.monotonic() - began > SLOW_START:  # data that were prepared now are read faster by trials
        began = time.monotonic()
        prepared = prepare(chosen)
    steps = prepared.cost.steps
    if steps is None:
        task = prepared.start.task
        raise UserError(
            f"training.budget={task.config.training.budget}: the weights of {chosen.choice.preset} are "
            "computed, not trained, so there are no settings to tune; give a budget, or a model that is "
            f"trained, such as --model {task.preset}"
        )
    if prepared.valid_batches is None:
        raise UserError(
            f"{chosen.data}: no held-out rows to choose settings by: give data.valid_fraction=0.1, or data "
            "with --valid"
        )
    seconds = IMPORT_SECONDS + time.monotonic() - began
    evaluation = steps.evaluation_seconds / max(1, steps.evaluations)
    cost = Cost(seconds, steps.step_seconds, evaluation, steps.total_steps, steps.steps_per_epoch)
    start = prepared.start
    return FirstModel(start.task, prepared.batches, start.knows_outcomes, cost)
