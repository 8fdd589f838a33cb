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
    def row_count(self) -> int:
        return len(self.targets)

    def cut(self, rows: slice) -> "TokenBatch":
        """Return some of the rows."""
        starts = None if self.stream_starts is None else self.stream_starts[rows]
        lengths = None if self.lengths is None else self.lengths[rows]
        return TokenBatch(self.inputs[rows], self.targets[rows], starts, lengths)

    @property
    def target_lengths(self) -> Int[Tensor, " B"]:
        """The number of targets of each row."""
        full = torch.full((self.row_count,), self.targets.shape[1])
        return full if self.lengths is None else self.lengths

    @property
    def tokens(self) -> int:
        """Number of targets that are scored."""
        return self.targets.numel() if self.lengths is None else int(self.lengths.sum())


@dataclass(frozen=True)
class ExampleBatch:
    """A batch of examples. `rows` are their indices, so that predictions can be restored to the original
    order.

    A column is (B,), or for images (B, C, H, W). A ragged column is (B, T) or (B, T, C) with zeros on the
    right, and has `lengths` (B,). `row_tokens` has the unit of speed: of each row one image, or the number of
    target tokens, or of source tokens if there is no ragged target.
    """

    rows: Int[Tensor, " B"]
    columns: dict[str, Tensor]
    lengths: dict[str, Tensor]
    row_tokens: Int[Tensor, " B"]

    def to(self, device: torch.device) -> "ExampleBatch":
        """Return the batch on `device`. `rows` stay on the CPU, where predictions are restored to the
        original order."""
        columns = {name: column.to(device) for name, column in self.columns.items()}
        lengths = {name: length.to(device) for name, length in self.lengths.items()}
        return ExampleBatch(self.rows, columns, lengths, self.row_tokens)

    @property
    def tokens(self) -> int:
        """The number of tokens or images."""
        return int(self.row_tokens.sum())

    @property
    def target_lengths(self) -> Int[Tensor, " B"]:
        """The number of targets of each row, which must be ragged."""
        return self.lengths["target"]

    @property
    def row_count(self) -> int | None:
        """The number of rows; None if a column has another number of entries, so that rows can't be cut."""
        sizes = {len(values) for values in (*self.columns.values(), *self.lengths.values())}
        return len(self.rows) if sizes == {len(self.rows)} else None

    def cut(self, rows: slice) -> "ExampleBatch":
        """Return some of the rows. Each column must have one entry for each row."""
        return self.take(torch.arange(len(self.rows))[rows])

    def take(self, indices: Int[Tensor, " N"]) -> "ExampleBatch":
        """Return the rows at `indices`. Each column must have one entry for each row."""
        columns = {name: column[indices] for name, column in self.columns.items()}
        lengths = {name: length[indices] for name, length in self.lengths.items()}
        on_cpu = indices.cpu()
        return ExampleBatch(self.rows[on_cpu], columns, lengths, self.row_tokens[on_cpu])

    @property
    def stream_starts(self) -> None:
        """Return None: no state is carried from one example to another."""
        return None
