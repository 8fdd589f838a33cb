"""The contract of every mixer: what moves information along the sequence."""

from typing import Protocol

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
