"""Open or create a run: its task, bound to processor and model, and its objective."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import torch
from torch import nn

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.parse_json import parse_json
from foveal.core.runtime import resolve_precision, seed_everything
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import PreparedData, ReusedProcessors
from foveal.data.core.split_data import evenly_spaced
from foveal.data.files.aligned import check_same_order
from foveal.data.files.data_part import open_part
from foveal.data.open import DataPaths
from foveal.layers.initialization import initialize, layers_of_rule
from foveal.store.cache import shorten_unpacked_paths, with_short_paths
from foveal.store.manifest import data_facts
from foveal.store.run import RunFolder, create_run
from foveal.store.sealed import seal_tensors, unique_state_dict
from foveal.tasks.activation_checkpointing import check_activation_checkpointing
from foveal.tasks.base import Task
from foveal.tasks.calibration import apply_calibration
from foveal.tasks.model_size import check_model_size
from foveal.tasks.open_logged import open_logged
from foveal.tasks.read_settings import config_to_toml
from foveal.tasks.registry import open_task
from foveal.tasks.run_plugins import run_plugins
from foveal.tasks.trained_on import DataChangedError, absolute_paths, check_data_exist, was_trained_on
from foveal.tasks.warm_start import INITIAL_WEIGHTS_FILE, load_initial_weights, load_run_weights
from foveal.training.agreement import Agreement
from foveal.training.freezing import freeze
from foveal.ui.console import log as log_to_console

NUMBER_LABELS = "number_labels"
"""The fact about the data of a run that its labels were numbers or truth values in memory."""
EXAMPLES_SHOWN = 6
"""Number of held-out examples that are shown if the user names none."""


class EvaluationData(NamedTuple):
    """A held-out split, its name, and facts about it."""

    split_data: Any
    split: str
    facts: dict[str, Any]


@dataclass(frozen=True)
class Session:
    """A run, ready to use: `task` is bound to the run's processor, and to its model in evaluation mode."""

    run: RunFolder
    task: Any
    objective: Any

    @property
    def config(self) -> Any:
        return self.task.config

    @property
    def model(self) -> Any:
        return self.task.model

    @property
    def processor(self) -> Any:
        return self.task.processor

    @property
    def label_values(self) -> dict[str, Any]:
        """The value of each label that was a number or truth value in memory; empty for labels of files."""
        has_numbers = self.run.manifest["data"].get(NUMBER_LABELS)
        return {label: parse_json(label) for label in self.task.labels} if has_numbers else {}

    @property
    def temperature(self) -> float:
        """The temperature of the logits of classes; 1 for a run that is not calibrated."""
        return float(getattr(self.model, "temperature", 1.0))

    def shared_by(self, together: Agreement) -> "Session":
        """Return the run with batches that ranks share."""
        return replace(self, task=self.task.shared_by(together))

    def held_out(self, data: str | None, option_hint: str, log: Log = log_to_console) -> EvaluationData:
        """Return all of `data`, or without `data` the run's test split, else the run's validation split.

        Raises: UserError: the run has no held-out data (`option_hint` says how to name other data), or `data`
            are two files in another order than those of training.
        """
        log = with_short_paths(log)
        if data is not None:
            if own := data_facts(self.run.manifest, self.run.path).data:
                check_same_order(open_part(own).aligned, open_part(data).aligned)
            split_data, facts = self.task.prepare_held_out(data, log)
            if was_trained_on(self.run, data, facts):
                log(
                    f"{data}: the run was trained on rows of these data, so the scores say little about "
                    f"others; foveal evaluate {self.run.path} scores the held-out rows"
                )
                facts = facts | {"trained_on": True}
            return EvaluationData(split_data, shorten_unpacked_paths(data), facts)
        prepared = prepare_run_data(self.run, log)
        if prepared.held_out is None:
            raise UserError(
                f"{self.run.path}: trained without held-out data: name held-out data {option_hint}"
            )
        split = "valid" if prepared.test is None else "test"
        return EvaluationData(prepared.held_out, split, prepared.facts["parts"][split])

    def training_data(self, log: Log = log_to_console) -> PreparedData[Any, Any]:
        """Return the run's own data as in training.

        Raises: UserError: the data have changed since training, or the run was imported.
        """
        return prepare_run_data(self.run, log)

    def prepare_other(
        self, data: str, log: Log, reused: ReusedProcessors, split: bool
    ) -> PreparedData[Any, Any]:
        """Prepare other data as for training, with the run's `reused` processors.

        Without `split`, all of `data` is the training split.
        """
        config = self.config
        if not split:
            sizes = config.data.model_copy(update={"valid_fraction": 0.0, "test_fraction": 0.0})
            config = config.model_copy(update={"data": sizes})
        return self.task.with_config(config).bind(None).prepare(DataPaths(data), log, reused)

    def with_random_weights(self) -> "Session":
        """Return the same run with a model of its own, whose weights depend only on the config and its seed.
        Weights that were not drawn, but imported or fitted to data, are random, too."""
        device = next(self.model.parameters()).device
        task = self.task.bind(self.processor, build_model(self.task, device).eval())
        return replace(self, task=task, objective=task.objective())

    def with_first_weights(self) -> "Session":
        """Return the same run with a model of its own, with the weights that its training began with."""
        load_initial_weights(self.run, (session := self.with_random_weights()).model)
        return session

    def other_run(self, path: str) -> "Session":
        """Open another run on the same device.

        Raises: UserError: the path is not a run.
        """
        return load(path, next(self.model.parameters()).device)

    def few_held_out(self, log: Log) -> tuple[Examples, list[str], list[Any]]:
        """Return a few held-out examples, their names and their references."""
        split, name, _ = self.held_out(None, "with --query", log)
        log(f"shown are rows of the run's {name} split, which were held out; --query names others")
        rows = evenly_spaced(len(split), EXAMPLES_SHOWN)
        sources, references = ([texts[row] for row in rows] for texts in (split.sources, split.references))
        return split.examples.subset(rows), sources, references


def resolve_config(config: Config, device: torch.device) -> Config:
    """Return the config with machine-dependent settings resolved, so that a run resumes the same way on
    another machine."""
    training = config.training
    precision = resolve_precision(training.precision, device)
    return config.model_copy(update={"training": training.model_copy(update={"precision": precision})})


def build_model(task: Task, device: torch.device) -> nn.Module:
    """Return the task's model with its initial weights, which depend only on the config and its seed.

    Weights are frozen as configured.

    Raises: UserError: the weights and their gradients do not fit into the memory of this machine, or a
        setting of the training does not fit the model.
    """
    config = task.config
    check_model_size(task)
    seed_everything(config.training.seed, "weights")
    model = task.new_model()
    initialize(model, config.model.initialization, _projection(model))
    freeze(model, config.training.freeze)
    check_activation_checkpointing(model, config.training)
    return model.to(device)


def check_initialization(task: Task) -> None:
    """Check that the model of a new training has layers that its rule of first weights is for.

    Raises: UserError: it has none.
    """
    rule = task.config.model.initialization
    if rule != "default" and not layers_of_rule(task.model, _projection(task.model)):
        raise UserError(
            f"model.initialization={rule}: the model has no linear layers or convolutions between its input "
            "and its projection, so the setting changes nothing; leave it out"
        )


def _projection(model: nn.Module) -> nn.Module:
    """Return the layer from the last features to the outputs."""
    head = model.get_submodule("head") if hasattr(model, "head") else model
    return head.get_submodule("projection")


def load(
    path: str | Path,
    device: str | torch.device = "cpu",
    log: Log = log_to_console,
    trust_plugin: bool = False,
) -> Session:
    """Open a run folder: its task with processor and model, and its objective.

    If the run is calibrated, the model has its temperature. `trust_plugin` allows to execute the code of
    plugins that the run keeps.

    Raises: UserError: the path is not a run, is damaged, or has no weights yet, or code of a plugin would be
        executed unasked.
    """
    run = open_logged(Path(path), log, trust_plugin)
    task = open_task(run)
    task = task.bind(task.processor, build_model(task, torch.device(device)).eval())
    load_run_weights(run, task)
    apply_calibration(run, task.model, log)
    return Session(run, task, task.objective())


def new_run(
    path: Path,
    task: Task,
    prepared: PreparedData[Any, Any],
    data_paths: DataPaths,
    preset: str = "",
    device: str = "cpu",
    start: nn.Module | None = None,
    has_number_labels: bool = False,
) -> RunFolder:
    """Create the folder of a run on `prepared`, the data at `data_paths`.

    `start` is a model whose initial weights do not come from the seed. These weights are stored for the case
    that the run is stopped before its first checkpoint. `has_number_labels` says whether the labels were
    numbers or truth values in memory.
    """
    paths = {split: absolute_paths(name) for split, name in data_paths._asdict().items()}
    data_facts: dict[str, Any] = {**paths, "preset": preset, "device": device, "facts": prepared.facts}
    data_facts |= {NUMBER_LABELS: True} if has_number_labels else {}
    lines = (
        json.dumps({"location": shorten_unpacked_paths(row.location), "reason": row.reason})
        for row in prepared.skipped
    )
    extra_files = (
        {"skipped.jsonl": "".join(f"{line}\n" for line in lines).encode()} if prepared.skipped else {}
    )
    task = task.bind(prepared.processor)
    files = task.processor_files()
    if start is not None:
        files = files | {INITIAL_WEIGHTS_FILE: seal_tensors(unique_state_dict(start), {"which": "start"})}
    toml, plugins = config_to_toml(task.config), run_plugins(task.config, paths.values())
    return create_run(
        path,
        task.config,
        toml,
        files,
        data_facts,
        extra_files=extra_files,
        plugins=plugins,
        log_units=task.summarize(prepared).log_units(task.loss_unit),
    )


def prepare_run_data(run: RunFolder, log: Log) -> PreparedData[Any, Any]:
    """Return the data of a run as in training.

    Raises: DataChangedError: the data have changed since training.
    Raises: UserError: the run was imported.
    """
    facts = data_facts(run.manifest, run.path)
    if facts.data is None:
        raise UserError(
            f"{run.path}: imported, so the run has no data of its own: name other data, or train a new run "
            f"with foveal train DATA --from {quote(str(run.path))}"
        )
    paths, before = DataPaths(facts.data, facts.valid, facts.test), facts.facts.parts
    check_data_exist(run, (facts.data, facts.valid, facts.test))
    prepared = open_task(run).prepare(paths, log)
    now = prepared.facts["parts"]
    for split in before | now:
        if split not in before or split not in now or now[split]["sha256"] != before[split].sha256:
            data = str(getattr(paths, split, None) or paths.data)
            raise DataChangedError(
                data,
                f"the split {split} has changed since {run.path} was made; restore the data, or train a new "
                "run",
            )
    return prepared
