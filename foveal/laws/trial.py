"""A module with a state under test: inputs, initial states, gradients, and comparisons up to rounding."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.core.state import State
from foveal.laws.law import require, require_close
from foveal.laws.module_states import state_entries

B, T = 3, 11
"""Rows and positions of the inputs of a law."""


@dataclass(frozen=True)
class Trial:
    """A module under test, and the laws that it promises."""

    module: nn.Module
    width: int
    """Width of the inputs."""
    dtype: torch.dtype
    tolerance: float
    standing_nan: bool = True
    """A NaN in the future does not change earlier outputs."""
    exact: bool = True
    """Causal bit for bit."""
    memory: Memory | None = None
    """The memory, if the module reads one: rows for any batch of a law, in order."""

    def inputs(self, *shape: int) -> Tensor:
        return torch.randn(*(shape or (B, T)), self.width, dtype=self.dtype)

    def begin(self, *rows: int, capacity: int | None = None) -> State:
        """Return the initial state of these rows, or by default of the first B rows."""
        chosen = list(rows) or slice(B)
        memory = None
        if self.memory is not None:
            vectors, mask, summary = (part[chosen] for part in self.parts())
            memory = Memory(vectors, mask, summary)
        module: Any = self.module
        return module.init_state(len(rows) or B, capacity, memory)

    def start(self, *rows: int) -> State:
        """Return the initial state, or None if no memory is read."""
        return None if self.memory is None else self.begin(*rows)

    def parts(self) -> list[Tensor]:
        """Return the rows of the memory."""
        memory = self.memory
        return [] if memory is None else [memory.vectors, memory.mask, memory.summary]

    def gradients(self, outputs: list[Tensor], *inputs: Tensor) -> list[Tensor]:
        """Return `gradients`, including those of the memory."""
        return gradients(self.module, outputs, *inputs, *self.parts()[::2])

    def close(self, a: Tensor, b: Tensor, problem: str, slack: float = 1.0) -> None:
        """Check that two tensors are equal up to rounding, relative to the largest number.

        Raises: LawBroken: they are not; `problem` says what that means.
        """
        require_close(a, b, slack * self.tolerance, problem)

    def same(self, state: object, other: object, problem: str) -> None:
        """Check that two states are equivalent.

        Raises: LawBroken: they are not; `problem` says what that means.
        """
        entries, others = state_entries(self.module, state), state_entries(self.module, other)
        require(len(entries) == len(others), f"{problem}: {len(entries)} parts, not {len(others)}")
        for a, b in zip(entries, others, strict=True):
            self.close(a, b, problem)


def gradients(module: nn.Module, outputs: list[Tensor], *inputs: Tensor) -> list[Tensor]:
    """Return the gradient of a fixed random functional of `outputs` to every parameter and input."""
    generator = torch.Generator().manual_seed(1)
    loss = torch.zeros((), dtype=outputs[0].dtype)
    for output in outputs:
        if output.is_floating_point() and output.requires_grad:
            weight = torch.randn(output.shape, generator=generator, dtype=torch.float64).to(output.dtype)
            loss = loss + (output * weight).sum()
    wanted = [*module.parameters(), *inputs]
    each = torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(w) if g is None else g for w, g in zip(wanted, each, strict=True)]
