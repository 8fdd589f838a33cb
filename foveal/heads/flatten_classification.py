"""The classification head of the first convolutional networks, which reads all positions of a feature map."""

from collections.abc import Callable
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.core.memory import Memory
from foveal.layers.blocks.moe import AuxLosses
from foveal.layers.dropout import Dropout


class FlattenClassificationHead(nn.Module):
    """The vectors of a grid concatenated, hidden layers each followed by dropout, and a projection.

    The head is made for a `grid` of a fixed number of rows and columns. A larger grid is averaged to this
    size, over windows that overlap where the sides are not multiples. The vectors are concatenated position
    by position; torchvision concatenates channel by channel. Hidden weights start as those of convolutions
    with a bias. The projection starts normal with standard deviation 0.01 (Krizhevsky et al. 2012).

    Example:

        >>> encoder = layers.ImageEncoder([layers.ConvNormAct(3, 8, 3, stride=8)], 8)
        >>> memory, _ = encoder(torch.randn(2, 3, 32, 32))
        >>> head = layers.FlattenClassificationHead(8, grid=(4, 4), hidden=(32,), classes=3)
        >>> features, aux = head(memory)
        >>> tuple(head.project(features).shape)
        (2, 3)
    """

    not_hidden = ("projection",)

    def __init__(
        self,
        width: int,
        grid: tuple[int, int],
        hidden: tuple[int, ...],
        classes: int,
        dropout: float = 0.0,
        activation: Callable[[Tensor], Tensor] = F.relu,
    ):
        super().__init__()
        self.width, self.grid, self.classes = width, grid, classes
        sizes = (width * grid[0] * grid[1], *hidden)
        self.hidden = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(sizes))
        self.activation = activation
        self.dropout = Dropout(dropout)
        self.projection = nn.Linear(sizes[-1], classes)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for layer in self.hidden:
            assert isinstance(layer, nn.Linear)
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
        nn.init.normal_(self.projection.weight, std=0.01)
        nn.init.zeros_(self.projection.bias)

    def forward(self, memory: Memory) -> tuple[Float[Tensor, "B E"], AuxLosses]:
        """Return the input of the projection, and an empty `aux`.

        Raises: ValueError: the memory has no grid, or its grid is smaller than the head's.
        """
        x = self._flatten(memory)
        for layer in self.hidden:
            x = self.dropout(self.activation(layer(x)))
        return x, {}

    def project(self, features: Float[Tensor, "B E"]) -> Float[Tensor, "B C"]:
        """Return the logits of the classes."""
        return self.projection(features)

    def _flatten(self, memory: Memory) -> Float[Tensor, "B F"]:
        grid = memory.segments[0].grid if len(memory.segments) == 1 else None
        if grid is None or grid[0] < self.grid[0] or grid[1] < self.grid[1]:
            actual = "a memory of no grid" if grid is None else f"a grid of {grid[0]}x{grid[1]}"
            raise ValueError(f"{actual}, but this head was made for one of {self.grid[0]}x{self.grid[1]}")
        if grid == self.grid:
            return memory.vectors.flatten(1)
        B, _, D = memory.vectors.shape
        maps = F.adaptive_avg_pool2d(memory.vectors.mT.reshape(B, D, *grid), self.grid)
        return maps.flatten(2).mT.flatten(1)
