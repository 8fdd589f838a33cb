"""Dropout as a layer: torch's, with noise that all threads generate."""

from jaxtyping import Float
from torch import Tensor, nn

from foveal.ops.dropout import dropout


class Dropout(nn.Dropout):
    """Applies `ops.dropout` in training, and nothing in evaluation (Srivastava et al. 2014).

    Example:

        >>> layers.Dropout(0.5).eval()(torch.ones(3))
        tensor([1., 1., 1.])
    """

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return dropout(x, self.p) if self.training and self.p else x
