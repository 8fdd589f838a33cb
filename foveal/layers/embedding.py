"""Tokens to vectors: a learned table, or one-hot vectors (equivalent, with the table in the next layer)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.distributed.tensor_group import ONE_PART, SplitAxes, TensorGroup


class Embedding(nn.Module):
    """Returns row `tokens[b, t]` of a table (V, D), which starts normal with standard deviation 1, multiplied
    by the number `scale` (the root of D: Vaswani et al. 2017, 3.4).

    Example:

        >>> tuple(layers.Embedding(100, 16)(torch.tensor([[1, 2, 3]])).shape)
        (1, 3, 16)
    """

    not_hidden = ("table",)
    group = ONE_PART

    def __init__(self, size: int, width: int, scale: float = 1.0):
        super().__init__()
        self.size, self.width, self.scale = size, width, scale
        self.table = nn.Parameter(torch.empty(size, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.table)

    def forward(self, tokens: Int[Tensor, "B T"], stream: TensorGroup = ONE_PART) -> Float[Tensor, "B t D"]:
        """Return the vectors; with a `stream` that ranks cut, those of the own positions."""
        if self.group is ONE_PART:
            return stream.cut(self._scaled(F.embedding(tokens, self.table)))
        rows = self.group.rows(self.size)
        is_own = (tokens >= rows.start) & (tokens < rows.stop)
        vectors = F.embedding((tokens - rows.start).where(is_own, 0), self.table)
        group = self.group if stream is ONE_PART else stream
        return group.leave(self._scaled(vectors.where(is_own[..., None], 0.0)))

    def _scaled(self, vectors: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        return vectors if self.scale == 1 else vectors * self.scale

    def split_among(self, group: TensorGroup) -> SplitAxes:
        """Split the vocabulary.

        Raises: ValueError: there are too few tokens.
        """
        group.check_rows(self.size, "tokens")
        self.group = group
        return {"table": 0}


class SegmentVectors(nn.Module):
    """Adds row `segments[b, t]` of a table (N, D) to each vector: which of the texts of its row a token is of
    (BERT's token types; Devlin et al. 2019, section 3). The table starts normal with standard deviation 0.02.

    Example:

        >>> segments = layers.SegmentVectors(2, 16)
        >>> tuple(segments(torch.zeros(1, 3, 16), torch.tensor([[0, 0, 1]])).shape)
        (1, 3, 16)
    """

    not_hidden = ("table",)

    def __init__(self, count: int, width: int):
        super().__init__()
        self.table = nn.Parameter(torch.empty(count, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.table, std=0.02)

    def forward(
        self, vectors: Float[Tensor, "B T D"], segments: Int[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T D"]:
        """Return the sums. Without `segments`, all vectors are of the first."""
        return vectors + (self.table[0] if segments is None else F.embedding(segments, self.table))


class OneHot(nn.Module):
    """Returns vectors of V numbers, 1 at the token and 0 elsewhere.

    Example:

        >>> layers.OneHot(3)(torch.tensor([[2, 0]]))
        tensor([[[0., 0., 1.],
                 [1., 0., 0.]]])
    """

    def __init__(self, size: int):
        super().__init__()
        self.size = self.width = size
        self.rows: Tensor
        self.register_buffer("rows", torch.empty(size, size), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.eye_(self.rows)

    def forward(self, tokens: Int[Tensor, "B T"], stream: TensorGroup = ONE_PART) -> Float[Tensor, "B t V"]:
        """Return the vectors; with a `stream` that ranks cut, those of the own positions."""
        return stream.cut(F.embedding(tokens, self.rows))
