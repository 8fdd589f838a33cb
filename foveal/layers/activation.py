"""An activation function as a module, for use in a sequence of modules."""

from jaxtyping import Float
from torch import Tensor, nn

from foveal.ops.activation import ACTIVATIONS, Activation


class ActivationLayer(nn.Module):
    """Applies `ops.activation.ACTIVATIONS[name]` to each element.

    Example:

        >>> layers.ActivationLayer("relu")(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def __init__(self, name: Activation):
        super().__init__()
        self.name: Activation = name

    def forward(self, x: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
        return ACTIVATIONS[self.name](x)
