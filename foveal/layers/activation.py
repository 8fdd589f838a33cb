"""An activation function as a module, to stand in a sequence."""

from jaxtyping import Float
from torch import Tensor, nn

from foveal.ops.activation import ACTIVATIONS, Activation


class ActivationLayer(nn.Module):
    """`ops.activation.ACTIVATIONS[name]`, element by element."""

    def __init__(self, name: Activation):
        super().__init__()
        self.name: Activation = name

    def forward(self, x: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
        return ACTIVATIONS[self.name](x)
