"""The contract of every mixer: what moves information along the sequence."""

from collections.abc import Mapping
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.core.memory import Memory
from foveal.core.state import State


class Mixer(Protocol):
    """`y, state = mixer(x, state=None, *, lengths=None)`.

    `x` is (B, T, d_in), `y` (B, T, d_out); `lengths` (B,) says how much of each row is there, the rest is
    padding on the right, and `y` is zero there. The state returned is exact after each row's own length;
    None stands for the start. With gradients off a state that is passed is consumed: it may be written
    in place, so `select` it first to go on from it twice.
    """

    d_in: int
    d_out: int
    bounded: bool
    """The state's size does not grow with the sequence, so it can be carried on for ever."""

    def __call__(
        self, x: Float[Tensor, "B T D"], state: State = None, *, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T E"], State]: ...

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        """The start, in fresh storage: zeros or learned; `capacity` inputs are to come, if known."""
        ...

    def reset_parameters(self) -> None: ...


StateShapes = Mapping[str, tuple[int, ...] | None]
"""Each part of a state: its tensor's shape behind the batch (-1: any size), or None where it is no tensor."""


def check_input(x: Float[Tensor, "B T D"], state: State, shapes: StateShapes, like: Tensor) -> None:
    """Refuse an input with nothing in it, and a state that is not of this batch or not this mixer's.

    The state's floating numbers must be of `like`'s dtype or, under autocast, of autocast's; None, the
    start, is always right. Raises ValueError with what was passed and what is needed.
    """
    if not (x.shape[0] and x.shape[1]):
        raise ValueError(f"{x.shape[0]} rows of {x.shape[1]} positions: both must be at least 1")
    if state is None:
        return
    if not isinstance(state, dict) or state.keys() != shapes.keys():
        found = ", ".join(sorted(state)) if isinstance(state, dict) else type(state).__name__
        raise ValueError(f"a state of another mixer: it has {found}; needed: {', '.join(sorted(shapes))}")
    for name, shape in shapes.items():
        if shape is None:
            continue
        part, needed = state[name], (x.shape[0], *shape)
        if part.shape != needed and not _shape_matches(part.shape, needed):
            sizes = ", ".join("any" if size < 0 else str(size) for size in needed)
            raise ValueError(f"the state's {name} has the shape {tuple(part.shape)}; needed: ({sizes})")
        if part.dtype != like.dtype and part.is_floating_point():
            device = like.device.type
            lower = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else like.dtype
            if part.dtype != lower:
                raise ValueError(f"the state's {name} is of {part.dtype}; needed: {like.dtype}")


def _shape_matches(shape: tuple[int, ...], needed: tuple[int, ...]) -> bool:
    return len(shape) == len(needed) and all(n in (s, -1) for s, n in zip(shape, needed, strict=True))
