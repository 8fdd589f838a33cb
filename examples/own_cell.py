"""A recurrent cell of your own: the minimal gated unit (Zhou et al. 2016), a GRU with a single gate.

    foveal train notes.txt --plugin own_cell.py model.mixers=minimal-gated
    foveal generate runs/notes-demo-1 --plugin own_cell.py --prompt "The "

`project` has the part of the equations that needs only the input, `step` the rest.
"""

from torch import Tensor, nn

import foveal
from foveal.layers.mixers.recurrent import RecurrentCell


@foveal.register_mixer("minimal-gated")
class MinimalGated(RecurrentCell):
    """`f = sigmoid(W_f x + U_f h)`, `n = tanh(W_n x + U_n (f * h))`, `h_t = (1 - f) * h + f * n`."""

    def __init__(self, d_in: int, width: int, bias: bool = True):
        super().__init__()
        self.d_in, self.d_out, self.sizes = d_in, width, {"h": width}
        self.input = nn.Linear(d_in, 2 * width, bias)
        self.forget, self.new = (nn.Linear(width, width, bias=False) for _ in range(2))

    def reset_parameters(self) -> None:
        for linear in (self.input, self.forget, self.new):
            linear.reset_parameters()

    def project(self, x: Tensor) -> Tensor:
        return self.input(x)

    def step(self, p: Tensor, state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        h, (p_f, p_n) = state["h"], p.chunk(2, 1)
        f = (p_f + self.forget(h)).sigmoid()
        n = (p_n + self.new(f * h)).tanh()
        h = (1 - f) * h + f * n
        return h, {"h": h}
