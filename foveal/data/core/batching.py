"""Batches of token rows, and batches of examples."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor


@dataclass(frozen=True)
class TokenBatch:
    """Rows of tokens. `targets` are `inputs` one token later.

    Inputs (B, T, C) tell more about each token, which comes first.

    `stream_starts` is True for rows that begin a new stream. `stream_starts` is None if all rows begin a new
    stream, and no state is carried. `lengths` counts the tokens of each row; the rest of a row is right
    padding with token 0. `lengths` is None if all rows are full.
    """

    inputs: Int[Tensor, "B T *C"]
    targets: Int[Tensor, "B T"]
    stream_starts: Bool[Tensor, " B"] | None = None
    lengths: Int[Tensor, " B"] | None = None

    def to(self, device: torch.device) -> "TokenBatch":
        """Return the batch on `device`. `stream_starts` stays on the CPU, where the trainer reads it."""
        lengths = None if self.lengths is None else self.lengths.to(device)
        return TokenBatch(self.inputs.to(device), self.targets.to(device), self.stream_starts, lengths)

    @property
    def tokens(self) -> int:
        """Number of targets that are scored."""
        return self.targets.numel() if self.lengths is None else int(self.lengths.sum())


@dataclass(frozen=True)
class ExampleBatch:
    """A batch of examples. `rows` are their indices, so that predictions can be restored to the original
    order.

    A column is (B,), or for images (B, C, H, W). A ragged column is (B, T) or (B, T, C) with zeros on the
    right, and has `lengths` (B,). `tokens` is the unit of speed: the number of images, of target tokens, or
    of source tokens if there is no ragged target.
    """

    rows: Int[Tensor, " B"]
    columns: dict[str, Tensor]
    lengths: dict[str, Tensor]
    tokens: int

    def to(self, device: torch.device) -> "ExampleBatch":
        """Return the batch on `device`. `rows` stay on the CPU, where predictions are restored to the
        original order."""
        columns = {name: column.to(device) for name, column in self.columns.items()}
        lengths = {name: length.to(device) for name, length in self.lengths.items()}
        return ExampleBatch(self.rows, columns, lengths, self.tokens)

    def take(self, indices: Int[Tensor, " N"]) -> "ExampleBatch":
        """Return the rows at `indices`. Each column must have one entry for each row."""
        columns = {name: column[indices] for name, column in self.columns.items()}
        lengths = {name: length[indices] for name, length in self.lengths.items()}
        return ExampleBatch(self.rows[indices.cpu()], columns, lengths, self.tokens)

    @property
    def stream_starts(self) -> None:
        """Return None: no state is carried from one example to another."""
        return None
