"""Whether the weights of a model fit into memory, before there are any."""

from foveal.core.allocator import free_memory
from foveal.core.errors import UserError
from foveal.core.runtime import physical_memory, release_freed_memory
from foveal.core.shapes_only import shapes_only
from foveal.tasks.base import Task

WEIGHT_BYTES = 4
BYTES_PER_PARAMETER = 8  # a weight and its gradient


def check_model_size(task: Task) -> None:
    """Check the size of a task's model before any of its memory is taken.

    Raises: UserError: the weights and their gradients do not fit into the memory of this machine, or the
        weights do not fit into the free memory.
    """
    with shapes_only():
        count = sum(parameter.numel() for parameter in task.new_model().parameters())
    needed, available = BYTES_PER_PARAMETER * count, physical_memory()
    if needed > available:
        raise UserError(
            f"the model has {count:,} parameters, whose weights and gradients take {needed / 1e9:,.0f} GB of "
            f"memory, and this machine has {available / 1e9:,.0f} GB: lower model.width, model.layers, "
            "data.vocab_size or data.image.size"
        )
    if (free := _too_little_memory(WEIGHT_BYTES * count)) is not None:
        raise UserError(
            f"the model has {count:,} parameters, whose weights take {WEIGHT_BYTES * count / 1e9:,.1f} GB of "
            f"memory, and {free / 1e9:,.1f} GB are free: lower model.width, model.layers, data.vocab_size or "
            "data.image.size"
        )


def _too_little_memory(needed: int) -> int | None:
    """Return the free bytes of the machine and its container if they are too few; None if not."""
    free = free_memory()
    if free is not None and needed > free:
        release_freed_memory()  # which an earlier training may have kept
        free = free_memory()
    return free if free is not None and needed > free else None
