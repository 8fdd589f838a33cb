"""The classification head of ConvNeXt, with a norm between the mean and the projection."""

from jaxtyping import Float
from torch import Tensor

from foveal.core.memory import Memory
from foveal.heads.classification import ClassificationHead
from foveal.layers.blocks.moe import AuxLosses
from foveal.layers.norm import LayerNorm


class NormClassificationHead(ClassificationHead):
    """`ClassificationHead` with the mean, followed by a layer norm (Liu et al. 2022).

    Example:

        >>> vectors, mask = torch.randn(2, 7, 16), torch.ones(2, 7, dtype=torch.bool)
        >>> head = layers.NormClassificationHead(16, classes=3)
        >>> features, aux = head(layers.Memory(vectors, mask, summary=vectors.mean(1)))
        >>> tuple(head.project(features).shape)
        (2, 3)
    """

    def __init__(self, width: int, classes: int, dropout: float = 0.0):
        super().__init__(width, classes, "mean", dropout)
        self.norm = LayerNorm(width, epsilon=1e-6)

    def forward(self, memory: Memory) -> tuple[Float[Tensor, "B D"], AuxLosses]:
        return self.dropout(self.norm(self._pool(memory))), {}
