"""A linear layer: torch's, with a faster path for the few vectors of a generation step."""

from jaxtyping import Float
from torch import Tensor, nn

from foveal.ops.linear import linear


class Linear(nn.Linear):
    """`y = W x + b` on the last axis (`ops.linear`).

    Example:

        >>> tuple(layers.Linear(8, 16)(torch.randn(2, 5, 8)).shape)
        (2, 5, 16)
    """

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B E"]:
        return linear(x, self.weight, self.bias)
