"""A linear layer: torch's, with a faster path for the few vectors of a generation step."""

from jaxtyping import Float
from torch import Tensor, nn

from foveal.distributed.tensor_group import ONE_PART, SplitAxes, TensorGroup
from foveal.ops.linear import linear


class Linear(nn.Linear):
    """`y = W x + b` on the last axis (`ops.linear`).

    Ranks may split a layer by its outputs or its inputs (`distributed.tensor_group`). Split by inputs, x has
    the own part of its last axis, and y is the sum of all parts, or its own positions in a cut stream.

    Example:

        >>> tuple(layers.Linear(8, 16)(torch.randn(2, 5, 8)).shape)
        (2, 5, 16)
    """

    group = ONE_PART
    """The ranks that split the inputs."""

    def split_outputs(self) -> SplitAxes:
        """Return the axes of a layer that is split by its outputs; the caller enters the group."""
        return {"weight": 0} if self.bias is None else {"weight": 0, "bias": 0}

    def split_inputs(self, group: TensorGroup) -> SplitAxes:
        """Split the layer by its inputs among the ranks of a group. Return the axis of each split weight."""
        self.group = group
        return {"weight": 1}

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*b E"]:
        if self.group is ONE_PART:
            return linear(x, self.weight, self.bias)
        y = self.group.leave(linear(x, self.weight, None))
        return y if self.bias is None else y + self.bias
