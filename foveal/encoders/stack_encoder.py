"""The common part of encoders of sequences of vectors: any stack, then a final norm."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.core.module_facts import LayerGroups, stack_layer_groups
from foveal.encoders.make_memory import make_memory
from foveal.encoders.pooling import EncoderPooling
from foveal.layers.blocks.moe import AuxLosses, aux_names
from foveal.layers.blocks.stack import Stack


class StackEncoder(nn.Module):
    """Base class of encoders with a stack and a final norm.

    The memory has a vector of `width` for each vector that the stack reads.
    """

    in_stream: tuple[str, ...] = ("norm",)

    def add_stack(self, stack: Stack, width: int, norm: nn.Module | None, pooling: EncoderPooling) -> None:
        """Add the stack and the norm, after the modules of a subclass that come before the stack.

        The order in which modules are added is that of the parameters.
        """
        self.width, self.stack = width, stack
        self.limit, self.aux_names = stack.limit, aux_names(stack)
        self.norm = nn.Identity() if norm is None else norm
        self.pooling: EncoderPooling = pooling

    def layer_groups(self) -> LayerGroups:
        """Return the parameters grouped by depth: the stack's blocks, and the final norm."""
        return stack_layer_groups(self, self.stack.blocks, after=[self.norm])

    def encode_vectors(
        self, vectors: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None
    ) -> tuple[Memory, AuxLosses]:
        """Return the memory of a sequence of vectors, and `aux`."""
        x, aux = self.stack.encode(vectors, lengths, self.norm)
        return make_memory(x, lengths, "tokens", self.pooling), aux
