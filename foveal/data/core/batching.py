"""A batch of token rows, and a batch of examples."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor


@dataclass(frozen=True)
class TokenBatch:
    """`targets` are `inputs` one token later.

    `stream_starts` is True for rows that begin a new stream; None if all do and nothing is carried.
    `lengths` counts each row's tokens, the rest is right padding with token 0; None if all rows are full.
    """

    inputs: Int[Tensor, "B T"]
    targets: Int[Tensor, "B T"]
    stream_starts: Bool[Tensor, " B"] | None = None
    lengths: Int[Tensor, " B"] | None = None

    def to(self, device: torch.device) -> "TokenBatch":
        """The batch on `device`; `stream_starts` stays where the trainer reads it."""
        lengths = None if self.lengths is None else self.lengths.to(device)
        return TokenBatch(self.inputs.to(device), self.targets.to(device), self.stream_starts, lengths)

    @property
    def tokens(self) -> int:
        """The targets to be scored."""
        return self.targets.numel() if self.lengths is None else int(self.lengths.sum())


@dataclass(frozen=True)
class ExampleBatch:
    """`rows` says which examples these are, so that predictions can be put back in order.

    `columns` are (B,), of images (B, C, H, W), or of ragged ones (B, T) or (B, T, C) with zeros on the right;
    these have `lengths` (B,). `tokens` is what speed is counted in: images, tokens of the target, or those of
    the source where there is no ragged target.
    """

    rows: Int[Tensor, " B"]
    columns: dict[str, Tensor]
    lengths: dict[str, Tensor]
    tokens: int

    def to(self, device: torch.device) -> "ExampleBatch":
        """The batch on `device`; `rows` stay where predictions are put in order."""
        columns = {name: column.to(device) for name, column in self.columns.items()}
        lengths = {name: length.to(device) for name, length in self.lengths.items()}
        return ExampleBatch(self.rows, columns, lengths, self.tokens)

    def take(self, indices: Int[Tensor, " N"]) -> "ExampleBatch":
        """Some of its rows, of batches all of whose columns have one entry for each row."""
        columns = {name: column[indices] for name, column in self.columns.items()}
        lengths = {name: length[indices] for name, length in self.lengths.items()}
        return ExampleBatch(self.rows[indices.cpu()], columns, lengths, self.tokens)

    @property
    def stream_starts(self) -> None:
        """Nothing is carried from one example to another."""
        return None
