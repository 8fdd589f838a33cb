"""Absolute positions, added to vectors or concatenated with them: a learned table, or sinusoids."""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.core.runtime import exact_dtype


class LearnedPosition(nn.Module):
    """A table of `limit` vectors, initially normal with standard deviation 0.02.

    Example:

        >>> position = layers.LearnedPosition(limit=10, width=16)
        >>> tuple(position(torch.tensor([0, 4]), 5).shape)  # positions 0 to 4, and 4 to 8
        (2, 5, 16)
    """

    not_hidden = ("table",)

    def __init__(self, limit: int, width: int):
        super().__init__()
        self.limit = limit
        self.table = nn.Parameter(torch.empty(limit, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.table, std=0.02)

    def fit_weights(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the first vectors of a longer table.

        Raises: ValueError: the table is shorter.
        """
        table = weights["table"]
        if self.limit > len(table):
            raise ValueError(f"learned positions end at {len(table)}, but {self.limit} are needed")
        return {"table": table[: self.limit]}

    def forward(self, offset: Int[Tensor, "#B"], size: int) -> Float[Tensor, "#B T D"]:
        return self.table[offset[:, None] + torch.arange(size, device=offset.device)]


class SinusoidalPosition(nn.Module):
    """`sin(w_i t), cos(w_i t)` with `w_i = 1 / 10000^(2i/D)`, i = 0 .. D/2 - 1 (Vaswani et al. 2017, 3.5).

    The vectors are bounded and unique, and are defined beyond the longest training text.

    Example:

        >>> layers.SinusoidalPosition(4)(torch.tensor([0]), 1)[0, 0].tolist()
        [0.0, 1.0, 0.0, 1.0]

    Raises: ValueError: the width is odd.
    """

    limit: int | None = None

    def __init__(self, width: int):
        super().__init__()
        if width % 2:
            raise ValueError(f"sinusoidal positions need an even width, not {width}")
        self.width = width

    def forward(self, offset: Int[Tensor, "#B"], size: int) -> Float[Tensor, "#B T D"]:
        device = offset.device
        exponents = torch.arange(0, self.width, 2, dtype=exact_dtype(device), device=device) / self.width
        t = offset[:, None] + torch.arange(size, device=device)
        angles = t[:, :, None] * 10000.0**-exponents
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(2)


class AddPositions(nn.Module):
    """Adds positions to `x`, or concatenates both, which adds their widths. Then applies a norm.

    Example:

        >>> positioned = layers.AddPositions(layers.SinusoidalPosition(16), "add")
        >>> tuple(positioned(torch.randn(2, 5, 16), torch.tensor([0])).shape)
        (2, 5, 16)
    """

    def __init__(
        self,
        position: LearnedPosition | SinusoidalPosition,
        join: Literal["add", "concatenate"],
        norm: nn.Module | None = None,
    ):
        super().__init__()
        self.position, self.join, self.limit = position, join, position.limit
        self.norm = nn.Identity() if norm is None else norm

    def forward(self, x: Float[Tensor, "B T D"], offset: Int[Tensor, "#B"]) -> Float[Tensor, "B T E"]:
        vectors = self.position(offset, x.shape[1]).to(x.dtype)
        if self.join == "add":
            return self.norm(x + vectors)
        return self.norm(torch.cat([x, vectors.expand(x.shape[0], -1, -1)], 2))


def check_position_limit(limit: int | None, filled: int) -> None:
    """Check that `filled` positions fit in a learned table of `limit` vectors.

    Raises: UserError: they do not fit.
    """
    if limit is not None and filled > limit:
        raise UserError(
            f"learned positions end at {limit}, but {filled} are needed: use a shorter text, "
            "or train with model.positions.kind=rotary or sinusoidal"
        )
