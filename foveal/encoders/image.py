"""Images to a Memory: the last feature map of a convolutional network."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.core.module_facts import LayerGroups, stack_layer_groups
from foveal.encoders.make_memory import make_memory
from foveal.layers.blocks.moe import AuxLosses

WINDOWED_LAYERS = (nn.Conv2d, nn.MaxPool2d, nn.AvgPool2d, nn.Unfold)


class ImageEncoder(nn.Module):
    """`memory, aux = encoder(images)`: `blocks` in sequence; the memory's vectors are the positions of the
    last map.

    All images of a batch have the same size, so there is no padding and `lengths` is None. `side` is the side
    of the last map, if the side is the same for all image sizes.

    Example:

        >>> encoder = layers.ImageEncoder([layers.ConvNormAct(3, 16, 3, stride=2)], 16)
        >>> memory, aux = encoder(torch.randn(2, 3, 32, 32))
        >>> tuple(memory.vectors.shape), memory.segments[0].grid
        ((2, 256, 16), (16, 16))
    """

    def __init__(self, blocks: Sequence[nn.Module], width: int, side: int | None = None):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.width, self.side = width, side
        self.limit: int | None = None
        self.aux_names: list[str] = []

    def layer_groups(self) -> LayerGroups:
        """Return the parameters grouped by depth: each of the `blocks` is a layer."""
        return stack_layer_groups(self, self.blocks)

    def input_block(self) -> nn.Module | None:
        """Return the first block, which reads the pixels; None if there are no blocks."""
        return self.blocks[0] if len(self.blocks) else None

    def forward(self, images: Float[Tensor, "B C H W"], lengths: None = None) -> tuple[Memory, AuxLosses]:
        # Channels last is the layout of the vectors, and up to a fifth faster on a CPU. The weights keep
        # their layout, which costs one or two percent. Fused Adam assumes the same layout of weights and
        # moments, and a resume gives the moments torch's default layout, so it would pair wrong numbers.
        x = images.contiguous(memory_format=torch.channels_last)
        for block in self.blocks:
            x = block(x)
        h, w = x.shape[2:]
        return make_memory(x.flatten(2).mT, None, "grid", "mean", (h, w)), {}

    def grid(self, size: int) -> tuple[int, int]:
        """Return the number of rows and columns of the last map for images of `size` by `size` pixels.

        The numbers are below 1 if the images are too small. Each convolution or pooling maps a size to `(size
        + 2 padding - kernel) / stride + 1`, rounded down.
        """
        for name, layer in self.blocks.named_modules():
            # A shortcut ends at the same size as the layers beside it.
            if isinstance(layer, WINDOWED_LAYERS) and "shortcut" not in name:
                kernel, stride, padding = map(_single_size, (layer.kernel_size, layer.stride, layer.padding))
                size = (size + 2 * padding - kernel) // stride + 1
        side = size if self.side is None or size < 1 else self.side
        return side, side


def _single_size(sides: Any) -> int:
    """Return a window's side. torch stores a single number for pooling, and two for convolutions, which are
    equal here."""
    return sides[0] if isinstance(sides, tuple) else sides
