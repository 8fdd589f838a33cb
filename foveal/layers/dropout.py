"""Dropout as a layer: torch's, with noise that all threads generate."""

from jaxtyping import Float
from torch import Tensor, nn

from foveal.distributed.tensor_group import ONE_PART
from foveal.ops.dropout import dropout, dropout_of_positions


class Dropout(nn.Dropout):
    """Applies `ops.dropout` in training, and nothing in evaluation (Srivastava et al. 2014).

    Ranks that cut the `stream` of x drop what a single process would drop.

    Example:

        >>> layers.Dropout(0.5).eval()(torch.ones(3))
        tensor([1., 1., 1.])
    """

    stream = ONE_PART

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        if not (self.training and self.p):
            return x
        if self.stream is ONE_PART:
            return dropout(x, self.p)
        return dropout_of_positions(x, self.p, self.stream.length(x), self.stream.positions(x))
