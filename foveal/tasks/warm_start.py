"""Warm starts: processors and weights of an earlier run for a new run, and a run's own initial weights."""

from typing import Any

import torch
from torch import Tensor, nn

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.core.module_facts import fit_weights, lendable_encoder
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.store.run import Run
from foveal.store.sealed import load_weights, open_tensors
from foveal.tasks.base import Task
from foveal.tasks.registry import open_task

ENCODER_PREFIX = "encoder."
INITIAL_WEIGHTS_FILE = "start.safetensors"


def processors_to_reuse(run: Run, task: Task) -> tuple[Any, ReusedProcessors]:
    """Return the processors of a run to reuse: all for its own task, or the encoder's for another task.

    Labels are always fitted to the new data.

    Raises: UserError: the run has no encoder that another task could use.
    """
    lender, config = open_task(run), task.config
    processor, same_task = lender.processor_for(config), lender.name == task.name
    if same_task and not task.fits_labels:
        return processor, NO_REUSE
    if not same_task and run.config.model.encoder.kind == "none" and not lends_model(lender, config):
        raise UserError(f"{run.path}: {lender.name} has no encoder that another task could use")
    lender = lender.bound(processor)
    return None, ReusedProcessors(lender.lend_processor(task), lender.labels)


def lends_model(lender: Task, config: Config) -> bool:
    """Return whether the whole model of a run can be the encoder in the config."""
    return bool(lender.lends_model_as) and config.model.encoder.kind == lender.lends_model_as


def load_run_weights(run: Run, task: Task) -> None:
    """Fill the model of `task` with the run's best weights.

    Raises: UserError: the run has no weights yet, or no head.
    """
    tensors = _weights(run)
    if _has_no_head(tensors):
        raise UserError(
            f"{run.path}: an encoder without a head, which can only be fine-tuned: "
            f"foveal train DATA --from {run.path} --task TASK"
        )
    load_weights(task.model, task.adapt_weights(tensors), str(run.weights))


def load_encoder(run: Run, model: nn.Module) -> None:
    """Fill the encoder of `model` with the encoder of the run's best weights, fitted to its sizes.

    If only one of the two encoders has a part that other runs can take over, that part is lent or filled.

    Raises: UserError: the weights do not fit.
    """
    lender, encoder = open_task(run), model.get_submodule("encoder")
    tensors = lender.encoder_weights(_weights(run), encoder)
    with torch.device("meta"):
        lender_model = lender.new_model()
    lent, filled = _lendable_part(getattr(lender_model, "encoder", None)), _lendable_part(encoder)
    prefix = ENCODER_PREFIX
    if lent and not filled:
        prefix += f"{lent}."
    elif filled and not lent:
        encoder = encoder.get_submodule(filled)
    weights = {name.removeprefix(prefix): x for name, x in tensors.items() if name.startswith(prefix)}
    try:
        weights = fit_weights(encoder, weights)
    except ValueError as error:
        raise UserError(f"{run.path}: {error}; lower data.max_length") from None
    load_weights(encoder, weights, str(run.weights))


def warm_start(run: Run, task: Task) -> bool:
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


def load_initial_weights(run: Run, model: nn.Module) -> None:
    """Fill a new `model` with the run's initial weights, if they do not come from the seed."""
    path = run.processor_folder / INITIAL_WEIGHTS_FILE
    if path.is_file():
        load_weights(model, open_tensors(path.read_bytes(), str(path))[0], str(path))


def _weights(run: Run) -> dict[str, Tensor]:
    if not run.weights.is_file():
        raise UserError(f"{run.path}: no weights yet: continue training with foveal resume {run.path}")
    return open_tensors(run.weights.read_bytes(), str(run.weights))[0]


def _has_no_head(tensors: dict[str, Tensor]) -> bool:
    return all(name.startswith(ENCODER_PREFIX) for name in tensors)


def _lendable_part(encoder: nn.Module | None) -> str:
    """Return the name of the part of an encoder that other runs can take over; empty if that is all of it."""
    if encoder is None:
        return ""
    part = lendable_encoder(encoder)
    return next((name for name, module in encoder.named_modules() if module is part), "")
