"""Frames of audio to a Memory with fewer vectors, by two encoders that reduce the number of steps."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.core.module_facts import LayerGroups, stack_layer_groups
from foveal.encoders.make_memory import make_memory
from foveal.encoders.pooling import EncoderPooling
from foveal.layers.audio.pyramidal_lstm import PyramidalLSTM
from foveal.layers.audio.subsampling import ConvSubsampling
from foveal.layers.blocks.moe import AuxLosses, aux_names
from foveal.layers.blocks.stack import Stack


class PyramidalLSTMEncoder(nn.Module):
    """`memory, aux = encoder(frames, lengths)`: the listener of Chan et al. 2016, a pyramid of LSTM layers.

    The memory has a vector of `width` for every `2^(layers - 1)` frames of F numbers. The summary is the
    final states of the two directions of the top layer, concatenated.

    Example:

        >>> encoder = layers.PyramidalLSTMEncoder(80, width=16, layers=3)
        >>> memory, aux = encoder(torch.randn(2, 12, 80), torch.tensor([12, 7]))
        >>> tuple(memory.vectors.shape), memory.mask.sum(1).tolist()
        ((2, 3, 16), [3, 2])

    Raises: ValueError: the width is odd.
    """

    def __init__(self, d_in: int, width: int, layers: int, dropout: float = 0.0):
        super().__init__()
        self.d_in, self.width = d_in, width
        self.limit: int | None = None
        self.frames_per_vector = 2 ** (layers - 1)
        self.aux_names: list[str] = []
        self.pyramid = PyramidalLSTM(d_in, width, layers, dropout)

    def layer_groups(self) -> LayerGroups:
        """Return the parameters grouped by depth: each LSTM of the pyramid is a layer."""
        return stack_layer_groups(self, self.pyramid.blocks)

    def forward(
        self, frames: Float[Tensor, "B S F"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Memory, AuxLosses]:
        x, lengths = self.pyramid(frames, lengths)
        return make_memory(x, lengths, "times", "final-states"), {}


class ConvSubsamplingEncoder(nn.Module):
    """`memory, aux = encoder(frames, lengths)`: strided convolutions, then any stack of mixers.

    The memory has a vector of `width` for every four frames. The final norm comes after the stack. With
    sinusoidal positions and blocks of full attention, this is the encoder of Radford et al. 2022, with four
    frames per vector instead of two.

    Example:

        >>> stack = layers.Stack([layers.Block(layers.FullAttention(16, heads=4))])
        >>> memory, aux = layers.ConvSubsamplingEncoder(80, stack, 16)(torch.randn(2, 12, 80))
        >>> tuple(memory.vectors.shape)
        (2, 3, 16)
    """

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
        self.subsampling = ConvSubsampling(d_in, width)
        self.stack = stack
        self.frames_per_vector = 4
        self.limit = None if stack.limit is None else self.frames_per_vector * stack.limit
        self.aux_names = aux_names(stack)
        self.norm = nn.Identity() if norm is None else norm
        self.pooling: EncoderPooling = pooling

    def layer_groups(self) -> LayerGroups:
        """Return the parameters grouped by depth: the stack's blocks, and the final norm."""
        return stack_layer_groups(self, self.stack.blocks, after=[self.norm])

    def forward(
        self, frames: Float[Tensor, "B S F"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Memory, AuxLosses]:
        x, lengths = self.subsampling(frames, lengths)
        x, aux = self.stack.encode(x, lengths, self.norm)
        return make_memory(x, lengths, "times", self.pooling), aux
