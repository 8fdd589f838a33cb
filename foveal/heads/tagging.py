"""The tagging head: a Memory to labels at some of its positions."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.layers.blocks.moe import AuxLosses
from foveal.layers.dropout import Dropout


class TaggingHead(nn.Module):
    """The memory's vectors at some positions (the first subword of each word), and a projection to the tags.

    The projection starts normal with standard deviation 0.02.

    Example:

        >>> vectors, mask = torch.randn(2, 7, 16), torch.ones(2, 7, dtype=torch.bool)
        >>> head = layers.TaggingHead(16, tags=5)
        >>> memory = layers.Memory(vectors, mask, summary=vectors.mean(1))
        >>> features, aux = head(memory, torch.tensor([[0, 2, 4], [1, 3, 5]]))  # three words of each text
        >>> tuple(head.project(features).shape)
        (2, 3, 5)
    """

    not_hidden = ("projection",)

    def __init__(self, width: int, tags: int, dropout: float = 0.0):
        super().__init__()
        self.width, self.tags = width, tags
        self.dropout = Dropout(dropout)
        self.projection = nn.Linear(width, tags)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.projection.weight, std=0.02)
        nn.init.zeros_(self.projection.bias)

    def forward(
        self, memory: Memory, positions: Int[Tensor, "B T"] | None = None
    ) -> tuple[Float[Tensor, "B T D"], AuxLosses]:
        """Return the vectors at `positions`, or all vectors if None. Padding may hold any valid positions."""
        vectors = memory.vectors
        if positions is not None:
            vectors = vectors.gather(1, positions[:, :, None].expand(-1, -1, vectors.shape[2]))
        return self.dropout(vectors), {}

    def project(self, features: Float[Tensor, "*B D"]) -> Float[Tensor, "*B C"]:
        """Return the logits of the tags."""
        return self.projection(features)
