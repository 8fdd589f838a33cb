"""What a head of attention does, as numbers: of the weights `a_ts` that query t gives to key s.

    entropy   H = mean_t -sum_s a_ts ln a_ts              in nats; 0 where a single key is read
    distance  mean_t sum_s a_ts |t - s|                   (Vig and Belinkov 2019; in patches for an image:
                                                          Dosovitskiy et al. 2021, appendix D.7)
    first, itself, previous   mean_t of a_t0, a_tt, a_t(t-1)
    largest   mean_t max_s a_ts
    induction mean_t sum_s a_ts [token s-1 is token t]    over the queries whose token stands earlier, too
                                                          (prefix matching: Olsson et al. 2022)

Queries that see no key do not count, nor does the first query for the previous token.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from foveal.inspection.attention.layers import AttentionLayer

ROWS_AT_ONCE = 512
"""Queries whose weights are in memory together."""


class HeadStatistics(NamedTuple):
    """The means over the queries of a head; NaN where they mean nothing."""

    entropy: float
    distance: float
    first: float
    itself: float
    previous: float
    largest: float
    induction: float


class MapSummary(NamedTuple):
    """The statistics of a layer's heads, and their maps in cells of `rows` x `columns` weights each.

    A cell is the mean of the visible weights in it, and NaN if there are none.
    """

    statistics: list[HeadStatistics]
    maps: Float[Tensor, "H t s"]
    cell: tuple[int, int]
    max_entropy: list[float]
    """The entropy of each head if every query read all visible keys alike, as a mean over the queries."""


def summarize_layer(layer: AttentionLayer, most_cells: int) -> MapSummary:
    """Return the statistics and the maps of a layer's heads, with at most `most_cells` rows and columns.

    Only `ROWS_AT_ONCE` queries are in memory together.
    """
    _, T, S = layer.shape
    cell = math.ceil(T / most_cells), math.ceil(S / most_cells)
    numbers, maps, limits = list[Tensor](), list[Tensor](), list[Tensor]()
    for rows in _row_blocks(T, cell[0]):
        weights, visible = layer.weights(None, rows), layer.visibility(None, rows)
        numbers.append(row_numbers(weights, visible, layer, rows.start))
        maps.append(pool_weights(weights, visible, cell))
        limits.append(visible.sum(2).double().log().where(visible.any(2), math.nan))
    means, limit = torch.cat(numbers, 2).nanmean(2), torch.cat(limits, 1).nanmean(1)
    statistics = [HeadStatistics(*head) for head in means.T.tolist()]
    return MapSummary(statistics, torch.cat(maps, 1), cell, limit.expand(len(statistics)).tolist())


def _row_blocks(count: int, multiple: int) -> Iterator[slice]:
    """Yield slices of the rows; all but the last have a multiple of rows."""
    step = max(1, ROWS_AT_ONCE // multiple) * multiple
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def row_numbers(
    weights: Float[Tensor, "H t S"], visible: Bool[Tensor, "H t S"], layer: AttentionLayer, start: int
) -> Float[Tensor, "7 H t"]:
    """Return the numbers of `HeadStatistics` for each query from `start` on."""
    t = weights.shape[1]
    nothing = weights.new_full((len(weights), t), math.nan)
    entropy = torch.special.entr(weights).sum(2)
    distance, first, itself, previous = nothing, nothing, nothing, nothing
    if layer.is_self:
        places = layer.places.to(weights)
        distances = torch.cdist(places[start : start + t], places)
        known = weights.where(distances.isfinite(), 0.0)  # a class token has no place
        distance = (known * distances.nan_to_num()).sum(2) / known.sum(2)
        itself = weights.diagonal(start, 1, 2)
    if layer.grid is None:
        first = weights[:, :, 0]
        if layer.is_self:
            later = weights.diagonal(start - 1, 1, 2) if start else weights[:, 1:].diagonal(0, 1, 2)
            previous = later if start else F.pad(later, (1, 0), value=math.nan)
    induction = nothing
    if layer.is_self and layer.has_key_tokens:
        followers = after_earlier_token(layer.keys, start, t)
        shares = (weights * followers).sum(2)
        induction = shares.where(followers.any(1), math.nan)
    numbers = torch.stack([entropy, distance, first, itself, previous, weights.amax(2), induction])
    return numbers.where(visible.any(2), math.nan)


def after_earlier_token(tokens: Sequence[str], start: int, count: int) -> Bool[Tensor, "t S"]:
    """Return for `count` positions from `start` on which positions come right after an earlier occurrence
    of their token."""
    kinds = {token: kind for kind, token in enumerate(dict.fromkeys(tokens))}
    ids = torch.tensor([kinds[token] for token in tokens])
    own, places = ids[start : start + count, None], torch.arange(len(ids))
    is_later = places[start : start + count, None] >= places[1:]
    return F.pad((own == ids[:-1]) & is_later, (1, 0))


def pool_weights(
    weights: Float[Tensor, "H T S"], visible: Bool[Tensor, "H T S"], cell: tuple[int, int]
) -> Float[Tensor, "H t s"]:
    """Return the mean of the visible weights in each cell of `rows` x `columns` weights; NaN if none is."""
    (rows, columns), (_, T, S) = cell, weights.shape
    ends = (0, -S % columns, 0, -T % rows)

    def sums(x: Tensor) -> Tensor:
        padded = F.pad(x, ends)
        cells = padded.view(len(x), padded.shape[1] // rows, rows, padded.shape[2] // columns, columns)
        return cells.sum((2, 4))

    return sums(weights.where(visible, 0.0)) / sums(visible.to(weights.dtype))
