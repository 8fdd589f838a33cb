"""Attention weights by tile, recomputed from queries and keys, while a fused kernel computes the outputs."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from foveal.ops.attention.dot_product import masked_softmax

Indices = int | slice | Sequence[int] | None
"""Which indices of an axis: one, a slice, several in any order, or all (None)."""
MAX_BLOCK_ELEMENTS = 1 << 22
"""Scores that exist at a time: 16 MB in float32."""
MAX_CHECKED_ROWS = 16
"""Queries of each head for which the outputs are compared with those of the kernel."""


@dataclass(frozen=True)
class AttentionMap:
    """The weights `softmax(scale q k^T + bias)` over the visible keys, of which any tile can be computed.

    Only queries and keys are kept, O(T + S). If there are fewer heads of keys (G) than of queries (H), H / G
    heads in a row share the keys. If `causal`, query i sees key j where `j <= i + offset` and, with a
    `window` w, `j > i + offset - w`. A query that sees no key has zeros.
    """

    q: Float[Tensor, "B H T K"]
    k: Float[Tensor, "B G S K"]
    visible: Bool[Tensor, "#B #H #T S"] | None = None
    bias: Float[Tensor, "#B #H #T S"] | None = None
    causal: bool = False
    offset: int = 0
    window: int = 0
    scale: float | None = None
    """The factor of the scores: `1 / sqrt(K)` if None."""
    deviation: float | None = None
    """Largest difference of weights times values to the kernel's outputs, where they were compared."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape (B, H, T, S) of all weights."""
        B, H, T, _ = self.q.shape
        return B, H, T, self.k.shape[2]

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the weights: at least float32."""
        return torch.promote_types(self.q.dtype, torch.float32)

    @property
    def nbytes(self) -> int:
        """The bytes of what is kept, not of the weights."""
        return sum(part.numel() * part.element_size() for part in self._tensors().values())

    def _tensors(self) -> dict[str, Tensor]:
        parts = {"q": self.q, "k": self.k, "visible": self.visible, "bias": self.bias}
        return {name: part for name, part in parts.items() if part is not None}

    def copy(self) -> "AttentionMap":
        """Return a map of its own memory, which stays as it is when a layer overwrites its cache."""
        copies = {name: part.detach().clone() for name, part in self._tensors().items()}
        return replace(self, **copies)  # type: ignore[arg-type]

    @torch.no_grad()
    def compare(self, v: Float[Tensor, "B G S V"], y: Float[Tensor, "B H T V"]) -> "AttentionMap":
        """Return the map with its deviation: a few rows of weights times values against the kernel's
        outputs."""
        T = self.shape[2]
        rows = [T * i // MAX_CHECKED_ROWS for i in range(MAX_CHECKED_ROWS)] if T > MAX_CHECKED_ROWS else None
        values = v.repeat_interleave(self.shape[1] // v.shape[1], 1).to(self.dtype)
        mixed = self.weights(rows=rows) @ values
        produced = y if rows is None else y[:, :, rows]
        difference = (mixed - produced.to(self.dtype)).abs()
        return replace(self, deviation=difference.max().item() if difference.numel() else 0.0)

    @torch.no_grad()
    def weights(
        self, heads: Indices = None, rows: Indices = None, columns: Indices = None
    ) -> Float[Tensor, "B h t s"]:
        """Return the weights of some heads, queries (rows) and keys (columns): exact, and all axes are kept.

        A row's softmax is over all its keys, also those outside the columns.
        """
        B, H, T, S = self.shape
        head_ids, row_ids, column_ids = (
            resolve_indices(part, size, self.q.device) for part, size in ((heads, H), (rows, T), (columns, S))
        )
        keys = self.k[:, head_ids // (H // self.k.shape[1])].to(self.dtype).mT
        tiles = [
            self._rows(head_ids, block, keys)[..., column_ids]
            for block in torch.split(row_ids, max(1, MAX_BLOCK_ELEMENTS // max(1, B * len(head_ids) * S)))
        ]
        return torch.cat(tiles, 2)

    def _rows(
        self, heads: Int[Tensor, " h"], rows: Int[Tensor, " t"], keys: Float[Tensor, "B h K S"]
    ) -> Float[Tensor, "B h t S"]:
        scale = 1 / math.sqrt(self.q.shape[3]) if self.scale is None else self.scale
        scores = (self.q[:, heads][:, :, rows].to(self.dtype) * scale) @ keys
        if self.bias is not None:
            scores = scores + _part(self.bias, heads, rows).to(self.dtype)
        return masked_softmax(scores, self._visible(heads, rows))

    def visibility(
        self, heads: Indices = None, rows: Indices = None, columns: Indices = None
    ) -> Bool[Tensor, "B h t s"]:
        """Return which keys (columns) queries (rows) of some heads see."""
        B, H, T, S = self.shape
        head_ids, row_ids, column_ids = (
            resolve_indices(part, size, self.q.device) for part, size in ((heads, H), (rows, T), (columns, S))
        )
        visible, shape = self._visible(head_ids, row_ids), (B, len(head_ids), len(row_ids), S)
        if visible is None:
            visible = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=self.q.device)
        return visible.expand(shape)[..., column_ids]

    def _visible(self, heads: Int[Tensor, " h"], rows: Int[Tensor, " t"]) -> Bool[Tensor, "*_"] | None:
        """Return the mask, which fits (B, h, t, S) when expanded; None if all is visible."""
        visible = None if self.visible is None else _part(self.visible, heads, rows)
        if self.bias is not None:
            finite = _part(self.bias, heads, rows) > -torch.inf
            visible = finite if visible is None else visible & finite
        if self.causal:
            last = (rows + self.offset)[:, None]
            positions = torch.arange(self.shape[3], device=rows.device)
            reach = positions <= last
            if self.window:
                reach &= positions > last - self.window
            visible = reach if visible is None else visible & reach
        return visible


def weights_tile(
    value: "Tensor | AttentionMap", heads: Indices, rows: Indices, columns: Indices
) -> Float[Tensor, "B h t s"]:
    """Return a tile of what a tap `weights` has given, as `AttentionMap.weights` does."""
    if isinstance(value, AttentionMap):
        return value.weights(heads, rows, columns)
    indices = zip((heads, rows, columns), value.shape[1:], strict=True)
    head_ids, row_ids, column_ids = (resolve_indices(part, size, value.device) for part, size in indices)
    return value[:, head_ids][:, :, row_ids][..., column_ids]


def visibility_tile(
    value: "Tensor | AttentionMap", heads: Indices, rows: Indices, columns: Indices
) -> Bool[Tensor, "B h t s"]:
    """Return which keys queries see, of what a tap `weights` has given. Without a mask they see all."""
    if isinstance(value, AttentionMap):
        return value.visibility(heads, rows, columns)
    return torch.ones_like(weights_tile(value, heads, rows, columns), dtype=torch.bool)


def whole_weights(value: "Tensor | AttentionMap") -> Tensor:
    """Return all weights of what a tap `weights` has given."""
    return value.weights() if isinstance(value, AttentionMap) else value


def _part(mask: Tensor, heads: Tensor, rows: Tensor) -> Tensor:
    """Return the heads and rows of a mask, whose axes may have size 1."""
    mask = mask if mask.shape[1] == 1 else mask[:, heads]
    return mask if mask.shape[2] == 1 else mask[:, :, rows]


def resolve_indices(indices: Indices, size: int, device: torch.device) -> Int[Tensor, " n"]:
    """Return indices as numbers from 0.

    Raises: IndexError: one is outside the axis.
    """
    every = range(size)
    if isinstance(indices, int):
        indices = [indices]
    elif indices is None:
        indices = slice(None)
    chosen: Iterable[int] = every[indices] if isinstance(indices, slice) else [every[i] for i in indices]
    return torch.tensor(list(chosen), dtype=torch.long, device=device)
