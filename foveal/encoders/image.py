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
    """`memory, aux = encoder(images)`: `blocks` one after the other, and each place of the map a vector.

    No padding and so no `lengths`: all images of a batch are of one size. `side` is that of the map, where it
    is the same for all sizes.
    """

    def __init__(self, blocks: Sequence[nn.Module], width: int, side: int | None = None):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.width, self.side = width, side
        self.limit: int | None = None
        self.aux_names: list[str] = []

    def layer_groups(self) -> LayerGroups:
        """Return the parameters by their depth: each of the `blocks` is a layer."""
        return stack_layer_groups(self, self.blocks)

    def forward(self, images: Float[Tensor, "B C H W"], lengths: None = None) -> tuple[Memory, AuxLosses]:
        # Channels last, as the vectors need them: up to a fifth faster on a CPU. The weights keep their
        # layout, for a hundredth or two: fused Adam takes weights and moments for arrays of one layout, and
        # would pair wrong numbers after a resume, which gives the moments torch's usual one.
        x = images.contiguous(memory_format=torch.channels_last)
        for block in self.blocks:
            x = block(x)
        h, w = x.shape[2:]
        return make_memory(x.flatten(2).mT, None, "grid", "mean", (h, w)), {}

    def grid(self, size: int) -> tuple[int, int]:
        """Rows and columns of the map of images of `size` by `size` pixels, less than 1 if those are too few.

        From the windows on the way: `(size + 2 padding - kernel) / stride + 1`, rounded down.
        """
        for name, part in self.blocks.named_modules():
            if isinstance(part, WINDOWED_LAYERS) and "shortcut" not in name:  # those lead to the same
                kernel, stride, padding = map(_single_size, (part.kernel_size, part.stride, part.padding))
                size = (size + 2 * padding - kernel) // stride + 1
        side = size if self.side is None or size < 1 else self.side
        return side, side


def _single_size(sides: Any) -> int:
    """torch keeps one number for pooling, and two, for us equal ones, for convolutions."""
    return sides[0] if isinstance(sides, tuple) else sides
