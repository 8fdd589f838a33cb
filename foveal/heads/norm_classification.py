"""The classifying head of ConvNeXt: a norm between the mean and the projection."""

from jaxtyping import Float
from torch import Tensor

from foveal.core.memory import Memory
from foveal.heads.classification import Classifier
from foveal.layers.blocks.moe import Aux
from foveal.layers.norm import LayerNorm


class NormedClassifier(Classifier):
    """`Classifier` of the mean, with its layer norm (Liu et al. 2022)."""

    def __init__(self, width: int, classes: int, dropout: float = 0.0):
        super().__init__(width, classes, "mean", dropout)
        self.norm = LayerNorm(width, epsilon=1e-6)

    def forward(self, memory: Memory) -> tuple[Float[Tensor, "B D"], Aux]:
        return self.dropout(self.norm(self._pool(memory))), {}
