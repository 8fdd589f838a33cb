"""A mixer that is no recurrent cell: an average that forgets, with a learned speed for each channel."""

import math
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

import foveal
from foveal.core.memory import Memory
from foveal.core.state import State
from foveal.layers.mixers.base import check_input
from foveal.ops.padding import zero_padding
from foveal.ops.recurrent.cells import run_recurrence


@foveal.register_mixer("average")
class Average(nn.Module):
    """`h_t = a * h_(t-1) + (1 - a) * W x_t`, `y_t = h_t * silu(V x_t)`."""

    bounded = True

    def __init__(
        self,
        d_in: int,
        width: int,
        half_life: Annotated[
            float, Field(gt=0, description="First half-life of the average, in steps.")
        ] = 4.0,
    ):
        super().__init__()
        self.d_in, self.d_out, self.half_life = d_in, width, half_life
        self.value, self.gate = nn.Linear(d_in, width), nn.Linear(d_in, width)
        self.decay = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.value.reset_parameters()
        self.gate.reset_parameters()
        keep = 0.5 ** (1 / self.half_life)
        nn.init.constant_(self.decay, math.log(keep / (1 - keep)))

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        return {"h": self.decay.new_zeros(batch, self.d_out)}

    def step(self, value: Tensor, state: State) -> tuple[Tensor, State]:
        keep = self.decay.sigmoid()
        h = keep * state["h"] + (1 - keep) * value
        return h, {"h": h}

    def forward(
        self, x: Tensor, state: State = None, *, lengths: Tensor | None = None
    ) -> tuple[Tensor, State]:
        check_input(x, state, {"h": (self.d_out,)}, self.decay)
        x = zero_padding(x, lengths)
        start = self.init_state(len(x)) if state is None else state
        h, after = run_recurrence(self.step, self.value(x), start, lengths)
        return zero_padding(h * nn.functional.silu(self.gate(x)), lengths), after
