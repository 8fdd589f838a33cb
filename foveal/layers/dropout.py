"""Dropout as a layer: torch's, with noise that is drawn by every thread."""

from jaxtyping import Float
from torch import Tensor, nn

from foveal.ops.dropout import dropout


class Dropout(nn.Dropout):
    """`ops.dropout` while training, nothing else."""

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return dropout(x, self.p) if self.training and self.p else x
