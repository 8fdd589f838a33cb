"""The patches of an image, in reading order, as a Memory (Dosovitskiy et al. 2021)."""

import math
from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.core.memory import Memory
from foveal.core.module_facts import LayerGroups, stack_layer_groups
from foveal.encoders.make_memory import make_memory
from foveal.encoders.pooling import EncoderPooling
from foveal.layers.blocks.moe import AuxLosses, aux_names
from foveal.layers.blocks.stack import Stack
from foveal.layers.linear import Linear

POSITION_TABLE = "stack.positioned.position.table"
"""The name of the learned positions."""


class PatchEncoder(nn.Module):
    """`memory, aux = encoder(images)`: a linear map of each square patch of `patch` pixels, then any stack.

    The memory is a grid of vectors of `width`. The final norm comes after the stack. The map's weights start
    normal with standard deviation 1/sqrt(patch^2 C) and its bias at zero, so standardized pixels become
    vectors with variance about 1.

    With the pooling `cls`, a learned class token is the first input of the stack, at its own position. The
    output at this position is the summary, and not part of the grid (3.1, equations 1 and 4). The class token
    starts normal with standard deviation 0.02.

    Example:

        >>> stack = layers.Stack([layers.Block(layers.FullAttention(16, heads=4))])
        >>> memory, aux = layers.PatchEncoder(3, 8, stack, 16, pooling="cls")(torch.randn(2, 3, 32, 32))
        >>> tuple(memory.vectors.shape), tuple(memory.summary.shape)
        ((2, 16, 16), (2, 16))
    """

    not_hidden = ("projection",)
    in_stream = ("norm",)

    def __init__(
        self,
        channels: int,
        patch: int,
        stack: Stack,
        width: int,
        norm: nn.Module | None = None,
        pooling: EncoderPooling | Literal["cls"] = "mean",
    ):
        super().__init__()
        self.channels, self.patch, self.width = channels, patch, width
        self.token = nn.Parameter(torch.empty(width)) if pooling == "cls" else None
        self.projection = Linear(channels * patch * patch, width)
        self.stack = stack
        self.limit, self.aux_names = stack.limit, aux_names(stack)
        self.norm = nn.Identity() if norm is None else norm
        self.pooling: EncoderPooling = "mean" if pooling == "cls" else pooling
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.projection.weight, std=self.projection.in_features**-0.5)
        nn.init.zeros_(self.projection.bias)
        if self.token is not None:
            nn.init.normal_(self.token, std=0.02)

    def layer_groups(self) -> LayerGroups:
        """Return the parameters grouped by depth: the stack's blocks, and the final norm."""
        return stack_layer_groups(self, self.stack.blocks, after=[self.norm])

    def fit_weights(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the weights of an encoder of other image sizes, with its learned positions interpolated."""
        if POSITION_TABLE not in weights:
            return weights
        count, tokens = len(self.get_parameter(POSITION_TABLE)), self.token is not None
        return weights | {POSITION_TABLE: interpolate_positions(weights[POSITION_TABLE], count, tokens)}

    def forward(
        self, images: Float[Tensor, "B C H W"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Memory, AuxLosses]:
        """Return the memory and `aux`. Images have no padding, so `lengths` is None.

        Raises: ValueError: the image size is not a multiple of the patch size.
        """
        x = self.projection(extract_patches(images, self.patch))
        if self.token is not None:
            x = torch.cat([self.token.to(x.dtype).expand(len(x), 1, -1), x], 1)
        x, aux = self.stack.encode(x, None, self.norm)
        grid = images.shape[2] // self.patch, images.shape[3] // self.patch
        if self.token is None:
            return make_memory(x, None, "grid", self.pooling, grid), aux
        return replace(make_memory(x[:, 1:], None, "grid", self.pooling, grid), summary=x[:, 0]), aux

    def grid(self, size: int) -> tuple[int, int]:
        """Return the number of rows and columns of patches in images of `size` by `size` pixels."""
        return size // self.patch, size // self.patch


def extract_patches(images: Float[Tensor, "B C H W"], side: int) -> Float[Tensor, "B S P"]:
    """Return the square patches of `side` pixels in reading order. A patch is a vector: channel by channel,
    row by row.

    Raises: ValueError: the image size is not a multiple of `side`.
    """
    B, C, H, W = images.shape
    if H % side or W % side:
        raise ValueError(f"patches of {side} pixels don't fill an image of {H} x {W}")
    squares = images.view(B, C, H // side, side, W // side, side).permute(0, 2, 4, 1, 3, 5)
    return squares.reshape(B, -1, C * side * side)


def interpolate_positions(table: Float[Tensor, "S D"], num_patches: int, tokens: int) -> Float[Tensor, "R D"]:
    """Return the learned positions of a square grid, interpolated to a square grid with `num_patches`
    patches.

    The interpolation is bicubic (Dosovitskiy et al. 2021, 3.2). The first `tokens` vectors are not part of
    the grid, and stay the same.
    """
    old_side, new_side = (math.isqrt(count - tokens) for count in (len(table), num_patches))
    if old_side == new_side:
        return table
    grid = torch.unflatten(table[tokens:].T, 1, (old_side, old_side))[None]
    grid = F.interpolate(grid, (new_side, new_side), mode="bicubic", align_corners=False)
    return torch.cat([table[:tokens], grid[0].flatten(1).T])
