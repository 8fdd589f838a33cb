"""Series of vectors (sensor channels, features) to a Memory."""

import math

from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.core.module_facts import LayerGroups, stack_layer_groups
from foveal.encoders.make_memory import make_memory
from foveal.encoders.pooling import EncoderPooling
from foveal.layers.blocks.moe import AuxLosses, aux_names
from foveal.layers.blocks.stack import Stack
from foveal.layers.linear import Linear
from foveal.ops.padding import zero_padding


class SeriesEncoder(nn.Module):
    """`memory, aux = encoder(values, lengths)`: a linear map of each step's C channels, then any stack.

    The memory has a vector of `width` for each step. The final norm comes after the stack. The map's weights
    start normal with standard deviation 1/sqrt(C) and its bias at zero, so standardized channels become
    vectors with variance 1 (LeCun et al. 1998, 4.6).

    Example:

        >>> stack = layers.Stack([layers.Block(layers.LSTM(16, 16))])
        >>> memory, aux = layers.SeriesEncoder(6, stack, 16)(torch.randn(2, 50, 6), torch.tensor([50, 30]))
        >>> tuple(memory.vectors.shape)
        (2, 50, 16)
    """

    not_hidden = ("projection",)
    in_stream = ("norm",)

    def __init__(
        self,
        d_in: int,
        stack: Stack,
        width: int,
        norm: nn.Module | None = None,
        pooling: EncoderPooling = "mean",
    ):
        super().__init__()
        self.d_in, self.width = d_in, width
        self.projection = Linear(d_in, width)
        self.stack = stack
        self.limit, self.aux_names = stack.limit, aux_names(stack)
        self.norm = nn.Identity() if norm is None else norm
        self.pooling: EncoderPooling = pooling
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.projection.weight, std=1 / math.sqrt(self.d_in))
        nn.init.zeros_(self.projection.bias)

    def layer_groups(self) -> LayerGroups:
        """Return the parameters grouped by depth: the stack's blocks, and the final norm."""
        return stack_layer_groups(self, self.stack.blocks, after=[self.norm])

    def forward(
        self, values: Float[Tensor, "B S C"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Memory, AuxLosses]:
        x = self.projection(zero_padding(values, lengths))
        x, aux = self.stack.encode(x, lengths, self.norm)
        return make_memory(x, lengths, "times", self.pooling), aux
