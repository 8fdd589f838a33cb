"""A batch of token rows."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor


@dataclass(frozen=True)
class TokenBatch:
    """`targets` are `inputs` one token later.

    `fresh` is True for rows that begin a new stream; None if all do and nothing is carried.
    `lengths` counts each row's tokens, the rest is right padding with token 0; None if all rows are full.
    """

    inputs: Int[Tensor, "B T"]
    targets: Int[Tensor, "B T"]
    fresh: Bool[Tensor, " B"] | None = None
    lengths: Int[Tensor, " B"] | None = None

    def to(self, device: torch.device) -> "TokenBatch":
        """The batch on `device`; `fresh` stays where the trainer reads it."""
        lengths = None if self.lengths is None else self.lengths.to(device)
        return TokenBatch(self.inputs.to(device), self.targets.to(device), self.fresh, lengths)

    @property
    def tokens(self) -> int:
        """The targets to be scored."""
        return self.targets.numel() if self.lengths is None else int(self.lengths.sum())
