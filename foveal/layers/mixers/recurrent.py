"""Recurrent mixers: a cell is one step of equations, and `Recurrent` runs the cell along the sequence.

Your own cell needs `sizes`, `project` and `step`. Training, truncated backpropagation, generation and the
tests of the laws then work for it (`examples/own_cell.py`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.core.state import State
from foveal.core.tap import StepStates, TappedModule
from foveal.layers.mixers.base import check_input, state_dtype
from foveal.ops.jit.dispatch import use_fast_path
from foveal.ops.padding import zero_padding
from foveal.ops.recurrent import cells
from foveal.ops.recurrent.cells import StepFunction


class RecurrentCell(nn.Module, ABC):
    """One step of a recurrence. `sizes` names the parts of its state and their widths.

    Example:

        >>> class Mean(layers.RecurrentCell):
        ...     def __init__(self, width):
        ...         super().__init__()
        ...         self.d_in = self.d_out = width
        ...         self.sizes = {"h": width}
        ...         self.decay = torch.nn.Parameter(torch.zeros(width))
        ...     def reset_parameters(self):
        ...         torch.nn.init.zeros_(self.decay)
        ...     def project(self, x):
        ...         return x
        ...     def step(self, p, state):
        ...         h = torch.lerp(p, state["h"], self.decay.sigmoid())
        ...         return h, {"h": h}
        >>> y, state = layers.Recurrent(Mean(8))(torch.randn(2, 5, 8))
        >>> torch.equal(state["h"], y[:, -1])
        True
    """

    d_in: int
    d_out: int
    sizes: dict[str, int]
    gate_names: tuple[str, ...] = ()
    """The gates that `step` gives to `show_gates`, in this order."""
    shown_gates: list[dict[str, Tensor]] | None = None
    """The gates of the steps so far, while somebody captures them."""

    @abstractmethod
    def reset_parameters(self) -> None:
        """Initialize every parameter again."""

    @abstractmethod
    def project(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T P"]:
        """Compute the part of the equations that depends on the input alone, for the whole sequence."""

    @abstractmethod
    def step(self, p: Float[Tensor, "B P"], state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Return `y_t, s_t` from `p_t` and `s_(t-1)`."""

    def fused(
        self, x: Float[Tensor, "B T D"], state: dict[str, Tensor], lengths: Int[Tensor, " B"] | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the whole sequence, by a faster way than single steps if there is one.

        Return the outputs, and the state after each row's own length.
        """
        return cells.run_recurrence(self.step, self.project(x), state, lengths)

    def show_gates(self, *gates: Float[Tensor, "B D"]) -> None:
        """Keep the gates of a step, if somebody captures them."""
        if self.shown_gates is not None:
            self.shown_gates.append(dict(zip(self.gate_names, gates, strict=True)))

    def as_mixer(self) -> "Recurrent":
        """Return the mixer that runs the cell."""
        return Recurrent(self)

    def fast_path(self) -> str:
        """Return the name of the path of `fused` for `ops.jit.dispatch`; empty if steps are the fastest."""
        return ""


class Recurrent(TappedModule):
    """The mixer that runs a cell. The initial state is zeros, or a learned vector that all rows share.

    Example:

        >>> mixer = layers.Recurrent(layers.GRUCell(8, 16), learned_start=True)
        >>> y, state = mixer(torch.randn(2, 5, 8), lengths=torch.tensor([5, 3]))
        >>> tuple(y.shape), tuple(state["h"].shape)
        ((2, 5, 16), (2, 16))
    """

    bounded = True

    def __init__(self, cell: RecurrentCell, learned_start: bool = False):
        super().__init__()
        self.cell = cell
        self.d_in, self.d_out = cell.d_in, cell.d_out
        self.shapes: dict[str, tuple[int, ...] | None] = {name: (size,) for name, size in cell.sizes.items()}
        self.start = nn.ParameterDict(
            {name: nn.Parameter(torch.zeros(size)) for name, size in cell.sizes.items() if learned_start}
        )

    def reset_parameters(self) -> None:
        self.cell.reset_parameters()
        for start in self.start.values():
            nn.init.zeros_(start)

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        if self.start:
            return {name: self.start[name].expand(batch, -1).clone() for name in self.cell.sizes}
        like = next(self.cell.parameters())
        dtype = state_dtype(like)
        return {name: like.new_zeros(batch, size, dtype=dtype) for name, size in self.cell.sizes.items()}

    def forward(
        self, x: Float[Tensor, "B T D"], state: State = None, *, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T E"], State]:
        check_input(x, state, self.shapes, next(self.cell.parameters()))
        x = zero_padding(x, lengths)
        if state is None:
            state = self.init_state(x.shape[0])
        # For one position a fused kernel would rearrange the weights first; the step reads them once.
        single_step = x.shape[1] == 1 and not torch.is_grad_enabled()
        # No kernel gives the states between.
        path = "" if single_step or self._states_wanted() else self.cell.fast_path()
        if use_fast_path(type(self.cell).__name__, path, bool(path)):
            y, after = self.cell.fused(x, state, lengths)
        else:
            y, after = self.run_steps(self.cell.step, self.cell.project(x), state, lengths)
        # A kernel may compute in lower precision; the state keeps its dtype.
        after = {name: part.to(state[name].dtype) for name, part in after.items()}
        y = zero_padding(y, lengths)
        self.tap("hidden", lambda: y)
        return y, after

    def run_steps(
        self,
        step: StepFunction,
        projected: Float[Tensor, "B T P"],
        state: State,
        lengths: Int[Tensor, " B"] | None,
    ) -> tuple[Float[Tensor, "B T E"], State]:
        """Run the recurrence step by step, and tap each part of the cell's state after each step."""
        states = list[dict[str, Tensor]]()

        def recorded_step(p: Tensor, before: State) -> tuple[Tensor, State]:
            y, after = step(p, before)
            states.append(after)
            return y, after

        run = recorded_step if self._states_wanted() else step
        with self._shown_gates() as gates:
            y, after = cells.run_recurrence(run, projected, state, lengths)
        for values, names in ((states, self.cell.sizes), (gates, self.cell.gate_names)):
            for name in names:
                self.tap(name, partial(_step_states, values, name, lengths))
        return y, after

    @contextmanager
    def _shown_gates(self) -> Iterator[list[dict[str, Tensor]]]:
        """Give the list of the gates of each step; it stays empty if nobody wants them."""
        gates = list[dict[str, Tensor]]()
        if any(map(self.has_listener, self.cell.gate_names)):
            self.cell.shown_gates = gates
        try:
            yield gates
        finally:
            self.cell.shown_gates = None

    def _states_wanted(self) -> bool:
        return any(map(self.has_listener, (*self.cell.sizes, *self.cell.gate_names)))


def _step_states(states: list[dict[str, Tensor]], name: str, lengths: Tensor | None) -> StepStates:
    return StepStates([state[name] for state in states], lengths)
