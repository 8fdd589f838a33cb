"""What is decided about a training before its data are read whole: task, model and all settings."""

from dataclasses import dataclass
from pathlib import Path

from foveal.api.training.options import TrainingOptions
from foveal.data.open import DataPaths, OpenedData, open_data
from foveal.store.cache import shorten_unpacked_paths
from foveal.store.run import RunFolder
from foveal.tasks.configure import TrainingChoice, choose_training, encoding_setting
from foveal.tasks.infer import describe_named_task
from foveal.tasks.open_logged import open_logged
from foveal.tasks.published_run import is_published, published_run
from foveal.tasks.registry import task_of
from foveal.ui.activity import Activity
from foveal.ui.console import log


@dataclass(frozen=True)
class ChosenTraining:
    """All that is decided about a training before its data are read whole."""

    data: str
    overrides: tuple[str, ...]
    """The user's settings as `key.sub=value`, with those that the options stand for."""
    options: TrainingOptions
    opened: OpenedData
    choice: TrainingChoice

    @property
    def paths(self) -> DataPaths:
        """The data of each split."""
        return DataPaths(self.opened, self.options.valid, self.options.test)

    @property
    def origin_name(self) -> str:
        """The name of what the training starts from, for the name of the run."""
        return _origin_name(self.choice, self.options)

    def lines(self) -> list[str]:
        """Return lines that tell what was chosen for DATA, and why."""
        return _choices(self.paths, self.opened, self.choice, self.options)


def choose(data: str, settings: tuple[str, ...], options: TrainingOptions) -> ChosenTraining:
    """Open DATA, and choose task, model and all settings.

    Raises: UserError or ConfigError: DATA can't be opened, or a setting does not fit.
    """
    overrides = (*settings, *options.overrides())
    start_from = None if options.start_from is None else open_base_run(options.start_from)
    with Activity(f"looking at {shorten_unpacked_paths(data)}"):
        opened = open_data(data, log, encoding_setting(overrides))
        choice = choose_training(
            opened,
            overrides,
            options.task,
            options.model,
            start_from,
            options.batch,
            options.pretrained == "auto",
            log,
        )
    return ChosenTraining(data, overrides, options, opened, choice)


def _choices(
    paths: DataPaths,
    data: OpenedData,
    choice: TrainingChoice,
    options: TrainingOptions,
) -> list[str]:
    """Return lines that tell what was chosen for DATA, and why."""
    task = task_of(choice.config)
    if choice.inferred is not None:
        lines = [str(choice.inferred)]
    else:
        named_model = f"--model {options.model}" if options.model else f"--from {options.start_from}"
        origin = "--task" if options.task is not None else named_model
        lines = [describe_named_task(data, type(task), origin)]
    if data.kind not in ("aligned", "missing"):
        replaced = {"valid": paths.valid, "test": paths.test}
        used = [split for split in task.labeled_splits(data) if replaced.get(split) is None]
        if splits := str(data.found_splits.only(used)):
            lines.append(f"splits: {splits}")
    if (defaults := choice.defaults) is not None:
        lines += [line for line in (str(defaults) if defaults.reason else "", defaults.advice) if line]
    return lines


def _origin_name(choice: TrainingChoice, options: TrainingOptions) -> str:
    """Return the name of what the training starts from, for the name of the run."""
    if options.model or options.start_from:
        return options.model or Path(options.start_from or "").name
    defaults = choice.defaults
    return Path(defaults.weights if choice.base_run and defaults else choice.preset).name


def open_base_run(path: Path) -> RunFolder:
    """Return the run at a path, or the run of published weights with that name.

    Raises: UserError: there is neither.
    """
    return (
        published_run(str(path), log) if is_published(str(path)) and not path.exists() else open_logged(path)
    )
