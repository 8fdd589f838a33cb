"""Attention as panels: the map of a head, all maps on one scale, a table by head, and maps over an image."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from foveal.inspection.attention.compute import HeadStatistics, MapSummary, pool_weights
from foveal.inspection.attention.layers import AttentionLayer
from foveal.inspection.attention.words import (
    WordAttention,
    average_target_words,
    visible_text,
    word_attention,
)
from foveal.inspection.panels import (
    Axis,
    Caption,
    Heatmap,
    HeatmapGrid,
    ImageRow,
    Images,
    NamedArray,
    Table,
    Tile,
)

MOST_CELLS, MOST_GRID_CELLS = 256, 64
"""Rows and columns at most of the map of a head, and of each map in a grid of heads."""
MOST_OF_CELLS = 0.99
"""The share of all cells of all maps that is not beyond the end of the scale."""
COLUMNS = 7
"""Images side by side."""
WEIGHT = "weight"
QUERY_NAMES = {"cross": "written", "pooling": "answer"}


def head_panel(layer: AttentionLayer, head: int) -> Heatmap:
    """Return the map of a head: a row for each query. Cross-attention to a text is between words."""
    title = f"{layer.path}, head {head}"
    _, T, S = layer.shape
    axes = QUERY_NAMES.get(layer.kind, "query"), "read" if layer.kind in QUERY_NAMES else "key"
    if layer.kind == "cross" and max(T, S) <= MOST_CELLS:
        return word_panel(title, words_of_layer(layer, head), None, axes)
    return map_panel(title, layer.weights(head), layer.visibility(head), layer, axes)


def map_panel(
    title: str,
    weights: Float[Tensor, "1 T S"],
    visible: Bool[Tensor, "1 T S"],
    layer: AttentionLayer,
    axes: tuple[str, str],
) -> Heatmap:
    """Return a map between the positions of a layer, in at most `MOST_CELLS` rows and columns."""
    _, T, S = weights.shape
    cell = math.ceil(T / MOST_CELLS), math.ceil(S / MOST_CELLS)
    values = pool_weights(weights, visible, cell)[0].numpy()
    queries, keys = (
        Axis(name, tuple(visible_text(label) for label in labels[::size]))
        for name, labels, size in zip(axes, (layer.queries, layer.keys), cell, strict=True)
    )
    array = NamedArray(values, (queries, keys), WEIGHT)
    return Heatmap(f"{title}{_pooled(cell)}", array, 0.0, _largest(values))


def words_of_layer(layer: AttentionLayer, head: int) -> WordAttention:
    """Return the weights of a head between words; keys that are no tokens stay as they are."""
    weights = layer.weights(head).numpy()
    if layer.has_key_tokens:
        return word_attention(layer.keys, layer.queries, weights)
    words, averaged = average_target_words(layer.queries, weights)
    return WordAttention(layer.keys, words, averaged, ("1",))


def word_panel(
    title: str, example: WordAttention, head: str | None, axes: tuple[str, str] = ("written", "read")
) -> Heatmap:
    """Return the map of a head, or of the mean of all heads, between words."""
    values = example.head_weights(head)
    queries, keys = Axis(axes[0], example.target), Axis(axes[1], example.source)
    return Heatmap(title, NamedArray(values, (queries, keys), WEIGHT), 0.0, _largest(values))


def word_grid(title: str, example: WordAttention) -> HeatmapGrid:
    """Return the maps of all heads between words, side by side on one scale."""
    axes = Axis("example", (title,)), Axis("head", tuple(f"head {name}" for name in example.heads))
    words = Axis("written", example.target), Axis("read", example.source)
    array = NamedArray(example.weights[None], (*axes, *words), WEIGHT)
    return HeatmapGrid(title, array, 0.0, _largest(example.weights))


def grid_panels(layers: Sequence[AttentionLayer], summaries: Sequence[MapSummary]) -> list[HeatmapGrid]:
    """Return the maps of all heads: a grid for the layers that have equal maps, all grids on one scale.

    The scale ends where nearly all cells do, since the first rows of causal maps have few cells to read.
    """
    if sum(layer.shape[0] for layer in layers) == 1:
        return []  # the map of the head is all
    cells = np.concatenate([summary.maps.numpy().ravel() for summary in summaries])
    high = float(np.nanquantile(cells, MOST_OF_CELLS)) or 1.0
    clipped = ", the largest weights share the strongest color" if _largest(cells) > high else ""
    groups: dict[tuple[str, tuple[int, int, int]], list[int]] = {}
    for number, layer in enumerate(layers):
        groups.setdefault((layer.kind, layer.shape), []).append(number)
    return [
        HeatmapGrid(
            f"{kind} attention{_pooled(summaries[numbers[0]].cell)}{clipped}",
            NamedArray(
                np.stack([summaries[number].maps.numpy() for number in numbers]),
                (
                    Axis("layer", tuple(f"layer {number}" for number in numbers)),
                    Axis("head", tuple(f"head {head}" for head in range(heads))),
                    Axis("query"),
                    Axis("key"),
                ),
                WEIGHT,
            ),
            0.0,
            high,
        )
        for (kind, (heads, *_)), numbers in groups.items()
    ]


def table_panel(layers: Sequence[AttentionLayer], summaries: Sequence[MapSummary]) -> Table:
    """Return the statistics of all heads."""
    rows = [
        (str(number), layer.path, layer.kind, str(head), *(_number(value) for value in statistics))
        for number, (layer, summary) in enumerate(zip(layers, summaries, strict=True))
        for head, statistics in enumerate(summary.statistics)
    ]
    return Table("", ("layer", "path", "kind", "head", *HeadStatistics._fields), tuple(rows))


def layers_over_image(
    layers: Sequence[AttentionLayer], image: UInt8[np.ndarray, "H W 3"]
) -> tuple[Images, ...]:
    """Return what each head of the layers over patches reads, over the image: the class token's weights, or
    the mean of all patches' weights. All are on one scale."""
    over = [(n, layer) for n, layer in enumerate(layers) if layer.grid is not None and layer.kind != "cross"]
    if not over:
        return ()
    reads = [_read_by_summary(layer) for _, layer in over]
    high = max(map(_largest, reads))
    rows = [
        ImageRow(
            tuple(_tile(image, weights, layer, high, f"head {head}") for head, weights in enumerate(read)),
            f"layer {number}",
        )
        for (number, layer), read in zip(over, reads, strict=True)
    ]
    reader = "the class token reads" if over[0][1].class_tokens else "the patches read, on average"
    return (Images(f"what {reader}; the brightest is {high:.2g}", tuple(rows)),)


def _read_by_summary(layer: AttentionLayer) -> Float[np.ndarray, "H S"]:
    """Return how much each head reads of each patch: for a class token, or on average."""
    first = layer.class_tokens
    rows = layer.weights(None, slice(first)) if first else layer.weights()
    read: Float[np.ndarray, "H S"] = rows.mean(1)[:, first:].numpy()
    return read


def words_over_image(
    weights: Float[np.ndarray, "T S"],
    words: Sequence[str],
    grid: tuple[int, int],
    image: UInt8[np.ndarray, "H W 3"],
) -> tuple[ImageRow, ...]:
    """Return the image, and the image with the weights of each word, all on one scale."""
    high = _largest(weights)
    tiles = [Tile(image, (Caption(""),))]
    for word, read in zip(words, weights, strict=True):
        heat = read.reshape(grid) / high
        tiles.append(Tile(image, (Caption(word), Caption(f"{read.max():.2f}", "muted")), heat=heat))
    return tuple(ImageRow(tuple(tiles[i : i + COLUMNS])) for i in range(0, len(tiles), COLUMNS))


def _tile(
    image: UInt8[np.ndarray, "H W 3"],
    weights: Float[np.ndarray, " S"],
    layer: AttentionLayer,
    high: float,
    name: str,
) -> Tile:
    assert layer.grid is not None
    return Tile(image, (Caption(name),), heat=weights.reshape(layer.grid) / high)


def _largest(values: Float[np.ndarray, "*_"]) -> float:
    """Return the end of a scale that starts at 0."""
    return float(np.nanmax(values, initial=0.0)) or 1.0


def _pooled(cell: tuple[int, int]) -> str:
    return "" if cell == (1, 1) else f", each cell the mean of {cell[0]} x {cell[1]} weights"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f}"
