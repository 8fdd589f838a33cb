"""The masked language modeling head: a Memory to the token hidden by each mask."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.layers.blocks.moe import AuxLosses
from foveal.layers.linear import Linear
from foveal.layers.norm import LayerNorm
from foveal.ops.activation import ACTIVATIONS, Activation


class MaskedLMHead(nn.Module):
    """`norm(activation(W h + b))` of the memory's vectors at some positions, and the projection to the
    vocabulary.

    The head is BERT's (Devlin et al. 2019); the layer before the projection is in the authors' code. The
    projection may share the `table` of the encoder's embedding. Matrices, including a shared table, start
    normal with standard deviation 0.02, so the first loss is near `ln V`.

    Example:

        >>> vectors, mask = torch.randn(2, 7, 16), torch.ones(2, 7, dtype=torch.bool)
        >>> hidden = torch.zeros(2, 7, dtype=torch.bool)
        >>> hidden[0, 3] = True
        >>> head = layers.MaskedLMHead(16, vocabulary=100)
        >>> features, aux = head(layers.Memory(vectors, mask, summary=vectors.mean(1)), hidden)
        >>> tuple(head.project(features).shape)
        (1, 100)
    """

    not_hidden = ("projection",)

    def __init__(
        self,
        width: int,
        vocabulary: int,
        table: nn.Parameter | None = None,
        activation: Activation = "gelu",
        epsilon: float = 1e-5,
    ):
        super().__init__()
        self.width, self.vocabulary = width, vocabulary
        self.transform = Linear(width, width)
        self.activate = ACTIVATIONS[activation]
        self.norm = LayerNorm(width, epsilon)
        self.projection = Linear(width, vocabulary)
        if table is not None:
            self.projection.weight = table
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for linear in (self.transform, self.projection):
            nn.init.normal_(linear.weight, std=0.02)
            nn.init.zeros_(linear.bias)

    def forward(
        self, memory: Memory, positions: Bool[Tensor, "B S"] | None = None
    ) -> tuple[Float[Tensor, "*N D"], AuxLosses]:
        """Return the features of the positions that are True, row by row, and compute no other; of all
        positions (B, S, D) if None."""
        vectors = memory.vectors if positions is None else memory.vectors[positions]
        return self.norm(self.activate(self.transform(vectors))), {}

    def project(self, features: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """Return the logits of the tokens."""
        return self.projection(features)
