"""Series of vectors to a Memory, by a named network of 1D convolutions."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.core.module_facts import LayerGroups, stack_layer_groups
from foveal.encoders.make_memory import make_memory
from foveal.layers.blocks.moe import AuxLosses
from foveal.ops.padding import sequence_mask


class ConvSeriesEncoder(nn.Module):
    """`memory, aux = encoder(values, lengths)`: `blocks` of convolutions in sequence.

    The memory has a vector of `width` for each step, and the mean of the vectors as its summary. Each block
    is called with (B, C, 1, T) and a mask, as the layers in `foveal.layers.series`.

    Example:

        >>> encoder = layers.ConvSeriesEncoder(6, [layers.SeriesConvNormAct(6, 16, 7)], 16)
        >>> memory, aux = encoder(torch.randn(2, 50, 6), torch.tensor([50, 30]))
        >>> tuple(memory.vectors.shape), tuple(memory.summary.shape)
        ((2, 50, 16), (2, 16))
    """

    def __init__(self, d_in: int, blocks: Sequence[nn.Module], width: int):
        super().__init__()
        self.d_in, self.width = d_in, width
        self.blocks = nn.ModuleList(blocks)
        self.limit: int | None = None
        self.aux_names: list[str] = []

    def layer_groups(self) -> LayerGroups:
        """Return the parameters grouped by depth: each of the `blocks` is a layer."""
        return stack_layer_groups(self, self.blocks)

    def forward(
        self, values: Float[Tensor, "B S C"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Memory, AuxLosses]:
        steps = values.shape[1]
        if lengths is not None and bool((lengths == steps).all()):
            lengths = None  # nothing to mask, which takes half as long
        mask = None if lengths is None else sequence_mask(lengths, steps)[:, None, None]
        x = values.mT[:, :, None].contiguous(memory_format=torch.channels_last)
        for block in self.blocks:
            x = block(x, mask)
        return make_memory(x[:, :, 0].mT, lengths, "times", "mean"), {}
