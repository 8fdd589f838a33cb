"""Whether the steps of a training fit into the free memory, and which batch does: counted, not tried."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from foveal.api.training.batch_sample import BatchSample
from foveal.config import ConfigError, parse_overrides
from foveal.config.old_names import flatten
from foveal.core.errors import UserError
from foveal.core.runtime import free_memory_on, release_freed_memory
from foveal.data.core.prepared_data import PreparedData
from foveal.tasks.activation_checkpointing import has_blocks
from foveal.tasks.base import Task
from foveal.tasks.config import from_tables
from foveal.training.protocols import Batch
from foveal.ui.console import format_bytes

STEP_GROWTH = 1.4
"""Memory of a process for a step, as a multiple of its tensors: freed memory does not always fit, and kernels
have working space of their own."""
CODE_BYTES = 100_000_000
"""Memory of the code and the kernels that steps, previews and reports load."""
SPARE = 4
"""How many times the roughly estimated memory has to be free for the step not to be counted, which takes a
second."""
ACCUMULATION = "training.grad_accumulation"
IMAGE_DIMS, PATCH_PIXELS = 4, 16
"""Dimensions of a batch of images; pixels for each place at which layers have outputs."""


def check_memory(task: Task, prepared: PreparedData[Any, Any], sample: BatchSample) -> None:
    """Check that the free memory of the device holds a step on the largest batch of a sample.

    Where the free memory is unknown, or a part of the user's can't be counted, nothing is checked.

    Raises: UserError: it does not; the error names the batch that fits.
    """
    free = free_memory_on(_device(task))
    if free is None or SPARE * (CODE_BYTES + _rough_memory(task, sample.largest)) < free:
        return
    needed = needed_memory(task, sample.largest)
    release_freed_memory()
    free = free_memory_on(_device(task))
    if needed is None or free is None or needed <= free:
        return
    settings = fitting_batch(task, prepared, free)
    advice = f"train with {settings}" if settings else _advice_without_batch(task)
    raise UserError(
        f"a training step takes about {format_bytes(needed)} of memory, and {format_bytes(free)} are free: "
        f"{advice}"
    )


def needed_memory(task: Task, batch: Batch) -> int | None:
    """Return the bytes that a training on such batches takes beside the model, in a step or for a checkpoint;
    None if a part of the model or of the objective can't be counted."""
    counted = counted_tensors(task, batch)
    if counted is None:
        return None
    step = counted.total() - counted["weights"]
    moments, averages = counted["optimizer states"], counted["averages"]
    checkpoint = counted["gradients"] + 2 * (moments + averages + counted["weights"])
    if _device(task).type != "cpu":
        return step
    return CODE_BYTES + max(round(STEP_GROWTH * step), checkpoint)


def counted_tensors(task: Task, batch: Batch) -> Counter[Any] | None:
    """Return the bytes of the tensors of a step at its peak, by kind; None if a part of the model or of the
    objective can't be counted."""
    # Imports a compiler of torch, which takes a second.
    from foveal.studies.plan.step_memory import counted_memory

    try:
        return counted_memory(task, batch)
    except Exception:  # a part of the user's may do anything with its numbers
        return None


def fitting_batch(task: Task, prepared: PreparedData[Any, Any], free: int) -> str | None:
    """Return the settings of the largest batch, a half, a quarter and so on, whose step takes at most `free`
    bytes. As many more batches are added up before an update. None if not even one row fits."""
    tables = task.config.model_dump()
    accumulation, tokens = _values(task)[ACCUMULATION], _largest_batch(task, prepared).tokens
    for setting in _smaller_batches(task):
        try:
            smaller = task.with_config(from_tables(tables, parse_overrides([setting])))
            largest = _largest_batch(smaller, prepared)
        except (UserError, ConfigError):  # no row fits into the batch
            return None
        if largest.tokens == tokens:  # all data, or a single row, as before
            continue
        accumulation, tokens = 2 * accumulation, largest.tokens
        needed = needed_memory(smaller, largest)
        if needed is not None and needed <= free:
            return f"{setting} {ACCUMULATION}={accumulation}"
    return None


def _largest_batch(task: Task, prepared: PreparedData[Any, Any]) -> Any:
    return BatchSample.of(task.train_batches(prepared.train)).largest


def _smaller_batches(task: Task) -> Iterator[str]:
    """Yield the settings of batches of a half, a quarter and so on."""
    values, key = _values(task), task.batch_setting
    if not values[key]:  # as many rows as another setting has tokens for
        key = Task.batch_setting
    size = values[key]
    while size > 1:
        size //= 2
        yield f"{key}={size}"


def _advice_without_batch(task: Task) -> str:
    """Return what to do where no batch fits."""
    recomputes = task.config.training.activation_checkpointing or not has_blocks(task.model)
    less = "" if recomputes else "training.activation_checkpointing=true keeps less; or "
    sizes = "data.image.size" if task.source_kind == "image" else "the lengths of the data"
    return f"a batch of one row does not fit either: {less}lower model.width, model.layers or {sizes}"


def _values(task: Task) -> dict[str, Any]:
    """Return the settings of a task by their whole keys."""
    return dict(flatten(task.config.model_dump()))


def _rough_memory(task: Task, batch: Any) -> int:
    """Return roughly how many bytes a step takes: each layer keeps its outputs at each place of the batch."""
    weights = [*task.model.parameters()]
    outputs = sum(len(weight) for weight in weights if weight.dim())
    numbers = sum(weight.numel() for weight in weights)
    return 4 * (4 * numbers + outputs * _places(batch))


def _places(batch: Any) -> int:
    """Return roughly the places of a batch at which layers have outputs: tokens, steps, or parts of images,
    whose features are coarser than pixels."""
    fields = vars(batch).values() if hasattr(batch, "__dict__") else ()
    values = [each for field in fields for each in (field.values() if isinstance(field, dict) else [field])]
    return max((_places_in(each) for each in values if isinstance(each, Tensor)), default=batch.tokens)


def _places_in(tensor: Tensor) -> int:
    if tensor.dim() < IMAGE_DIMS:
        return tensor.numel()
    return len(tensor) * tensor.shape[-2] * tensor.shape[-1] // PATCH_PIXELS


def _device(task: Task) -> torch.device:
    return next(task.model.parameters()).device
