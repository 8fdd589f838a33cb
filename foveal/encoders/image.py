"""Images to a Memory: the last feature map of a convolutional network."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

from foveal.core.memory import Memory, Segment
from foveal.layers.moe import Aux


class ImageEncoder(nn.Module):
    """`memory, aux = encoder(images)`: `blocks` one after the other, and each place of the map a vector.

    The first block reads `channels`, the last one gives `width`.

    No padding and so no `lengths`: all images of a batch are of one size.
    """

    def __init__(self, blocks: Sequence[nn.Module], channels: int, width: int):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.channels, self.width = channels, width
        self.limit: int | None = None
        self.aux_names: list[str] = []

    def forward(self, images: Float[Tensor, "B C H W"], lengths: None = None) -> tuple[Memory, Aux]:
        # Channels last, as the vectors need them: up to a fifth faster on a CPU. The weights keep their
        # layout, for a hundredth or two: fused Adam takes weights and moments for arrays of one layout, and
        # would pair wrong numbers after a resume, which gives the moments torch's usual one.
        x = images.contiguous(memory_format=torch.channels_last)
        for block in self.blocks:
            x = block(x)
        return remember_grid(x), {}

    @torch.no_grad()
    def grid(self, size: int) -> tuple[int, int]:
        """Rows and columns of the map of images of `size` by `size` pixels, found without computing it."""
        weights = {name: part.to("meta") for name, part in self.state_dict().items()}
        images = torch.empty(2, self.channels, size, size, device="meta")  # two: norms want several values
        memory, _ = functional_call(self, weights, images)
        return memory.segments[0].grid


def remember_grid(features: Float[Tensor, "B D h w"]) -> Memory:
    """One segment with a vector for each place, row by row; the summary is their mean."""
    B, _, h, w = features.shape
    vectors = features.flatten(2).mT.contiguous()
    mask = torch.ones(B, h * w, dtype=torch.bool, device=features.device)
    return Memory(vectors, mask, vectors.mean(1), (Segment(0, h * w, "grid", (h, w)),))
