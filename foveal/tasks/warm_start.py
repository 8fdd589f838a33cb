"""Warm starts: processors and weights of an earlier run for a new run, and a run's own initial weights."""

from shlex import quote
from typing import Any

import torch
from torch import Tensor, nn

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.core.module_facts import fit_weights, reusable_encoder
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.store.checkpoint_list import list_checkpoints
from foveal.store.regular_files import read_regular
from foveal.store.run import RunFolder
from foveal.store.sealed import check_finite, load_weights, open_tensors
from foveal.tasks.base import Task
from foveal.tasks.registry import open_task

ENCODER_PREFIX = "encoder."
INITIAL_WEIGHTS_FILE = "start.safetensors"


def processors_to_reuse(run: RunFolder, task: Task) -> tuple[Any, ReusedProcessors]:
    """Return the processors of a run to reuse: all for its own task, or the encoder's for another task.

    Labels are always fitted to the new data.

    Raises: UserError: the run has no encoder that another task could use.
    """
    base_task, config = open_task(run), task.config
    processor, same_task = base_task.processor_for(config), base_task.name == task.name
    if same_task and not task.fits_labels:
        return processor, NO_REUSE
    if (
        not same_task
        and run.config.model.encoder.kind == "none"
        and not reuses_whole_model(base_task, config)
    ):
        raise UserError(
            f"{run.path}: {base_task.name} has no encoder that another task could use: leave out --from"
        )
    base_task = base_task.bind(processor)
    return None, ReusedProcessors(base_task.processor_to_reuse(task), base_task.labels)


def lacks_head(run: RunFolder) -> bool:
    """Return whether a run is an encoder without a head, which can only be fine-tuned.

    Raises: UserError: the run has no weights yet, or a weight is not finite.
    """
    return _has_no_head(_weights(run))


def reuses_whole_model(base_task: Task, config: Config) -> bool:
    """Return whether the whole model of a run can be the encoder in the config."""
    return bool(base_task.model_reused_as) and config.model.encoder.kind == base_task.model_reused_as


def load_run_weights(run: RunFolder, task: Task) -> None:
    """Fill the model of `task` with the run's best weights.

    Raises: UserError: the run has no weights yet, no head, or a weight that is not finite.
    """
    tensors = _weights(run)
    if _has_no_head(tensors):
        raise UserError(
            f"{run.path}: an encoder without a head, which can only be fine-tuned: "
            f"foveal train DATA --from {quote(str(run.path))} --task TASK"
        )
    load_weights(task.model, task.adapt_weights(tensors), str(run.weights))


def load_encoder(run: RunFolder, model: nn.Module) -> None:
    """Fill the encoder of `model` with the encoder of the run's best weights, fitted to its sizes.

    If only one of the two encoders has a part that other runs can take over, only that part is used.

    Raises: UserError: the weights do not fit.
    """
    base_task, encoder = open_task(run), model.get_submodule("encoder")
    tensors = base_task.encoder_weights(_weights(run), encoder)
    with torch.device("meta"):
        base_model = base_task.new_model()
    reused_part = _reusable_part(getattr(base_model, "encoder", None))
    new_part = _reusable_part(encoder)
    prefix = ENCODER_PREFIX
    if reused_part and not new_part:
        prefix += f"{reused_part}."
    elif new_part and not reused_part:
        encoder = encoder.get_submodule(new_part)
    weights = {name.removeprefix(prefix): x for name, x in tensors.items() if name.startswith(prefix)}
    try:
        weights = fit_weights(encoder, weights)
    except ValueError as error:
        raise UserError(f"{run.path}: {error}; lower data.max_length") from None
    load_weights(encoder, weights, str(run.weights))


def warm_start(run: RunFolder, task: Task) -> bool:
    """Fill the new model of `task` with the weights of a run, or only its encoder.

    All weights are filled if the run has the same task and processor. Return whether all weights are filled.

    Raises: UserError: neither can be filled.
    """
    same_task = task.name == run.config.task.name
    same_processor = same_task and task.processor_files() == open_task(run).processor_files()
    fill_all = same_processor and not _has_no_head(_weights(run))
    if not fill_all and task.config.model.encoder.kind == "none":
        raise UserError(
            f"{run.path}: its labels are not those of the data, and it has no encoder to start from: "
            "leave out --from"
        )
    if fill_all:
        load_run_weights(run, task)
    else:
        load_encoder(run, task.model)
        task.reset_head()
    return fill_all


def load_initial_weights(run: RunFolder, model: nn.Module) -> None:
    """Fill a new `model` with the run's initial weights, if they do not come from the seed."""
    path = run.processor_folder / INITIAL_WEIGHTS_FILE
    if path.is_file():
        load_weights(model, open_tensors(read_regular(path), str(path))[0], str(path))


def _weights(run: RunFolder) -> dict[str, Tensor]:
    if not run.weights.is_file():
        if list_checkpoints(run.checkpoints):
            raise UserError(
                f"{run.weights}: missing; foveal resume {run.path} writes those of the newest checkpoint"
            )
        raise UserError(f"{run.path}: no weights yet: continue training with foveal resume {run.path}")
    tensors = open_tensors(read_regular(run.weights), str(run.weights))[0]
    check_finite(tensors, str(run.weights))
    return tensors


def _has_no_head(tensors: dict[str, Tensor]) -> bool:
    return all(name.startswith(ENCODER_PREFIX) for name in tensors)


def _reusable_part(encoder: nn.Module | None) -> str:
    """Return the name of the part of an encoder that other runs can take over; empty if that is all of it."""
    if encoder is None:
        return ""
    part = reusable_encoder(encoder)
    return next((name for name, module in encoder.named_modules() if module is part), "")
