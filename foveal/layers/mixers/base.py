"""The contract of every mixer: a layer that moves information along the sequence."""

from collections.abc import Mapping
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.core.memory import Memory
from foveal.core.state import State


class Mixer(Protocol):
    """`y, state = mixer(x, state=None, *, lengths=None)`.

    `x` is (B, T, d_in), `y` (B, T, d_out). `lengths` (B,) are the lengths of the rows; the rest of a row is
    padding on the right, where `y` is zero. The returned state is exact after each row's own length. None
    stands for the initial state. With gradients off, the mixer may write into the state that is passed. To
    continue from a state twice, copy the state first, for example with `core.state.select_rows`.
    """

    d_in: int
    d_out: int
    bounded: bool
    """The state's size does not grow with the sequence, so the state can be carried on without end."""

    def __call__(
        self, x: Float[Tensor, "B T D"], state: State = None, *, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T E"], State]: ...

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        """Return the initial state, zeros or learned, in fresh storage.

        `capacity` is the number of inputs to come, if known.
        """
        ...

    def reset_parameters(self) -> None: ...


StateShapes = Mapping[str, tuple[int, ...] | None]
"""The shape of each part of a state without the batch axis (-1: any size); None for a part that is no
tensor."""


def check_input(
    x: Float[Tensor, "B T D"],
    state: State,
    shapes: StateShapes,
    like: Tensor,
    positions: int | None = None,
) -> None:
    """Check that an input is a batch of sequences of vectors and not empty, and that a state fits this batch
    and this mixer. `positions` are all of the input, if x has but some.

    The state's floating-point numbers must have the dtype of `like` or, under autocast, that of autocast or
    `state_dtype(like)`. None, the initial state, always fits.

    Raises: ValueError: the input or the state does not fit; the message has the actual and the expected shape
    or dtype.
    """
    if x.dim() != 3:
        raise ValueError(f"an input of the shape {tuple(x.shape)}; needed: (rows, positions, width)")
    positions = x.shape[1] if positions is None else positions
    if not (x.shape[0] and positions):
        raise ValueError(f"{x.shape[0]} rows of {positions} positions: both must be at least 1")
    if state is None:
        return
    if not isinstance(state, dict) or state.keys() != shapes.keys():
        actual = ", ".join(sorted(state)) if isinstance(state, dict) else type(state).__name__
        raise ValueError(f"a state of another mixer: it has {actual}; needed: {', '.join(sorted(shapes))}")
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
            if part.dtype not in (lower, state_dtype(like)):
                raise ValueError(f"the state's {name} is of {part.dtype}; needed: {like.dtype}")


def state_dtype(weight: Tensor) -> torch.dtype:
    """Return the dtype of a new state of a mixer with a weight. Under autocast, where weights may have lower
    precision, states have at least float32."""
    autocast = not weight.is_meta and torch.is_autocast_enabled(weight.device.type)
    return torch.promote_types(weight.dtype, torch.float32) if autocast else weight.dtype


def _shape_matches(shape: tuple[int, ...], needed: tuple[int, ...]) -> bool:
    return len(shape) == len(needed) and all(n in (s, -1) for s, n in zip(shape, needed, strict=True))
