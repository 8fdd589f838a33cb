"""Checks of mixers that read a memory: such mixers start from a memory, never from None."""

from jaxtyping import Bool, Float
from torch import Tensor

from foveal.core.memory import Memory
from foveal.core.state import State

INIT_STATE_HINT = "begin with init_state(batch, memory=...)"


def memory_tensors(memory: Memory | None, batch: int) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
    """Return vectors and mask of `batch` rows in fresh storage, with zeros where the mask excludes a vector.

    Raises: ValueError: there is no memory, or the memory has another number of rows.
    """
    if memory is None:
        raise ValueError(f"a mixer that reads a memory can't begin without one: {INIT_STATE_HINT}")
    vectors, mask = memory.vectors, memory.mask
    if len(vectors) != batch:
        raise ValueError(f"a memory of {len(vectors)} rows; needed: {batch}")
    return vectors.where(mask[:, :, None], 0.0), mask.clone()


def require_state(state: State) -> None:
    """Check that a state was passed. For other mixers None is the initial state, but here the initial state
    has a memory.

    Raises: ValueError: the state is None.
    """
    if state is None:
        raise ValueError(f"a mixer that reads a memory can't go on from nothing: {INIT_STATE_HINT}")
