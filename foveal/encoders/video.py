"""Frames of a clip to a Memory with a vector per frame, by an image network and a stack or by 3D
convolutions."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.core.memory import Memory
from foveal.core.module_facts import LayerGroups, stack_layer_groups
from foveal.encoders.image import ImageEncoder
from foveal.encoders.make_memory import make_memory
from foveal.encoders.patches import PatchEncoder
from foveal.encoders.pooling import EncoderPooling
from foveal.layers.blocks.moe import AuxLosses, aux_names
from foveal.layers.blocks.stack import Stack
from foveal.layers.linear import Linear
from foveal.layers.vision.conv2d import BatchNorm2d
from foveal.ops.padding import sequence_mask


class FrameEncoder(nn.Module):
    """`memory, aux = encoder(frames, lengths)`: an image network for each frame, then any stack over time.

    All positions of the network's last map are flattened to a vector of `features` numbers per frame. The
    vector therefore tells where in the frame an object is, and the stack can infer motion. A linear map
    projects the vector to `width`, the width of the stack. The final norm comes after the stack. The map's
    weights start normal with standard deviation 1/sqrt(features).

    Example:

        >>> network = layers.ImageEncoder([layers.ConvNormAct(3, 8, 3, stride=8)], 8)
        >>> stack = layers.Stack([layers.Block(layers.GRU(16, 16))])
        >>> encoder = layers.FrameEncoder(network, 8 * 4 * 4, stack, 16)
        >>> memory, aux = encoder(torch.randn(2, 5, 3, 32, 32), torch.tensor([5, 3]))
        >>> tuple(memory.vectors.shape)
        (2, 5, 16)
    """

    not_hidden = ("projection",)
    in_stream = ("norm",)

    def __init__(
        self,
        network: ImageEncoder | PatchEncoder,
        features: int,
        stack: Stack,
        width: int,
        norm: nn.Module | None = None,
        pooling: EncoderPooling = "mean",
    ):
        super().__init__()
        self.network, self.width = network, width
        self.projection = Linear(features, width)
        self.stack = stack
        self.limit, self.aux_names = stack.limit, aux_names(stack)
        self.norm = nn.Identity() if norm is None else norm
        self.pooling: EncoderPooling = pooling
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _init_projection(self.projection)

    def layer_groups(self) -> LayerGroups:
        """Return the parameters grouped by depth: the stack's blocks, and the final norm."""
        return stack_layer_groups(self, self.stack.blocks, after=[self.norm], inputs=[self.network])

    def forward(
        self, frames: Float[Tensor, "B T C H W"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Memory, AuxLosses]:
        features, _ = self.network(unpad_rows(frames, lengths))
        x = pad_rows(self.projection(features.vectors.flatten(1)), lengths, frames.shape[1])
        x, aux = self.stack.encode(x, lengths, self.norm)
        return make_memory(x, lengths, "times", self.pooling), aux


class Conv3dEncoder(nn.Module):
    """`memory, aux = encoder(frames, lengths)`: convolutions over time, rows and columns (Tran et al. 2015).

    There are `layers` blocks (`Conv3dBlock`). Each block has twice as many channels as the previous block,
    and the last block has `width` channels. A linear map then reads all positions of a frame. A vector
    depends on `layers` frames to each side. The frames are squares of `size` pixels, and each block halves
    their side.

    Example:

        >>> memory, aux = layers.Conv3dEncoder(3, 16, layers=2, size=32)(torch.randn(2, 5, 3, 32, 32))
        >>> tuple(memory.vectors.shape)
        (2, 5, 16)

    Raises: ValueError: the layers halve the frames or the width to nothing.
    """

    not_hidden = ("projection",)

    def __init__(self, channels: int, width: int, layers: int, size: int):
        super().__init__()
        maps = [channels, *(width >> layers - layer for layer in range(1, layers + 1))]
        if min(maps) < 1 or size >> layers < 1:
            raise ValueError(f"{layers} layers halve {size} pixels, or {width} maps, to nothing")
        self.width = width
        self.layers = nn.ModuleList(map(Conv3dBlock, maps[:-1], maps[1:]))
        self.projection = Linear(width * (size >> layers) ** 2, width)
        self.limit: int | None = None
        self.aux_names: list[str] = []
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _init_projection(self.projection)

    def forward(
        self, frames: Float[Tensor, "B T C H W"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Memory, AuxLosses]:
        x, steps = unpad_rows(frames, lengths), frames.shape[1]
        for layer in self.layers:
            x = layer(x, lengths, steps)
        x = pad_rows(self.projection(x.flatten(1)), lengths, steps)
        return make_memory(x, lengths, "times", "mean"), {}


class Conv3dBlock(nn.Module):
    """`pool(relu(norm(W * x)))`: a 3 x 3 x 3 convolution, which keeps time and halves rows and columns.

    The convolution is padded with zeros. Norm and pooling work on single frames. Only valid frames pass
    through them, so padding does not enter the statistics. Weights start as in `layers.vision.conv2d.Conv2d`.

    Example:

        >>> block = layers.Conv3dBlock(3, 8)
        >>> tuple(block(torch.randn(10, 3, 32, 32), None, steps=5).shape)  # two clips of five frames
        (10, 8, 16, 16)
    """

    def __init__(self, d_in: int, d_out: int):
        super().__init__()
        self.convolution = nn.Conv3d(d_in, d_out, 3, padding=1, bias=False)
        self.norm = BatchNorm2d(d_out)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.convolution.weight, std=math.sqrt(2 / (27 * self.convolution.out_channels)))

    def forward(
        self, frames: Float[Tensor, "N C H W"], lengths: Int[Tensor, " B"] | None, steps: int
    ) -> Float[Tensor, "N D h w"]:
        """Return the feature maps of the frames of all rows, concatenated as in `unpad_rows`."""
        x = self.convolution(pad_rows(frames, lengths, steps).transpose(1, 2)).transpose(1, 2)
        return F.max_pool2d(F.relu(self.norm(unpad_rows(x, lengths))), 2)


def unpad_rows(x: Float[Tensor, "B T *D"], lengths: Int[Tensor, " B"] | None) -> Float[Tensor, "N *D"]:
    """Return the valid steps of all rows, concatenated, without the padding."""
    return x.flatten(0, 1) if lengths is None else x[sequence_mask(lengths, x.shape[1])]


def pad_rows(
    x: Float[Tensor, "N *D"], lengths: Int[Tensor, " B"] | None, steps: int
) -> Float[Tensor, "B T *D"]:
    """Undo `unpad_rows`: return rows of `steps` steps, with zeros in the padding."""
    if lengths is None:
        return torch.unflatten(x, 0, (-1, steps))
    rows = x.new_zeros(len(lengths), steps, *x.shape[1:])
    rows[sequence_mask(lengths, steps)] = x
    return rows


def _init_projection(projection: Linear) -> None:
    nn.init.normal_(projection.weight, std=projection.in_features**-0.5)
    nn.init.zeros_(projection.bias)
