"""Any mixer in both directions, for encoders."""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.core.state import State
from foveal.layers.mixers.base import Mixer
from foveal.ops.padding import reverse_by_length


class Bidirectional(nn.Module):
    """Two mixers, one of which reads each row backward, reversed within its own length.

    `join` says whether their outputs are concatenated (Schuster and Paliwal 1997) or added. Both directions
    need the whole row at once, so there is no state, and a state as argument is an error.

    Example:

        >>> mixer = layers.Bidirectional(layers.LSTM(8, 16), layers.LSTM(8, 16))
        >>> y, _ = mixer(torch.randn(2, 5, 8), lengths=torch.tensor([5, 3]))
        >>> tuple(y.shape)
        (2, 5, 32)

    Raises: ValueError: the widths of the mixers do not fit.
    """

    bounded = False

    def __init__(
        self, there: nn.Module, back: nn.Module, join: Literal["concatenate", "sum"] = "concatenate"
    ):
        super().__init__()
        self.there: Mixer = there  # type: ignore[assignment]
        self.back: Mixer = back  # type: ignore[assignment]
        if self.there.d_in != self.back.d_in:
            raise ValueError(f"both directions read the same input, not {there.d_in} and {back.d_in} wide")
        if join == "sum" and self.there.d_out != self.back.d_out:
            raise ValueError(f"a sum needs equal widths, not {there.d_out} and {back.d_out}")
        self.join = join
        self.d_in = self.there.d_in
        self.d_out = self.there.d_out + (self.back.d_out if join == "concatenate" else 0)

    def reset_parameters(self) -> None:
        self.there.reset_parameters()
        self.back.reset_parameters()

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        return None

    def forward(
        self, x: Float[Tensor, "B T D"], state: State = None, *, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T E"], State]:
        if state is not None:
            raise ValueError("a bidirectional mixer can't go on from a state: pass the whole row at once")
        there, _ = self.there(x, lengths=lengths)
        back, _ = self.back(reverse_by_length(x, lengths), lengths=lengths)
        back = reverse_by_length(back, lengths)
        return (torch.cat([there, back], 2) if self.join == "concatenate" else there + back), None
