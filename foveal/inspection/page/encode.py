"""A payload as bytes for the browser: a JSON header, then the numbers of its panels.

    8 bytes   length n of the header, little endian
    n bytes   header, JSON in UTF-8, padded with spaces to a multiple of 8
    ...       the body: arrays and images, at the places that the header names

Large arrays are tiles, which the page asks for by their number among the blobs.
"""

import json
from functools import singledispatch
from typing import Any

import numpy as np

from foveal.core.finite_json import finite_json
from foveal.inspection.page.arrays import ALIGNMENT, Bundle
from foveal.inspection.page.encoded import EncodedPayload
from foveal.inspection.panels import (
    Axis,
    Bars,
    Caption,
    ColoredText,
    Graph,
    Heatmap,
    HeatmapGrid,
    Histograms,
    Images,
    Lines,
    Mark,
    NamedArray,
    Table,
    Tile,
)
from foveal.inspection.payload import Payload
from foveal.inspection.style import image_png, to_image

KINDS = {
    Heatmap: "heatmap",
    HeatmapGrid: "heatmap-grid",
    Lines: "lines",
    Histograms: "histograms",
    Bars: "bars",
    ColoredText: "colored-text",
    Images: "images",
    Graph: "graph",
    Table: "table",
}
"""The element of the page that draws a kind of panel."""


def encode_payload(payload: Payload) -> EncodedPayload:
    """Return a payload as bytes."""
    bundle = Bundle()
    panels = [
        {"kind": KINDS[type(panel)], "title": panel.title, "sentence": panel.sentence()}
        | encode_panel(panel, bundle)
        for panel in payload.panels
    ]
    about = {"view": payload.view, "subject": payload.subject, "title": payload.title}
    honest = {"caveat": payload.caveat, "exactness": payload.exactness, "facts": payload.facts}
    text = json.dumps(finite_json(about | honest | {"panels": panels}), allow_nan=False, ensure_ascii=True)
    header = text.encode("ascii")
    return EncodedPayload(header + b" " * (-len(header) % ALIGNMENT), bytes(bundle.body), bundle.blobs)


@singledispatch
def encode_panel(panel: Any, bundle: Bundle) -> dict[str, Any]:
    """Return the header of a panel. Its numbers go into the bundle."""
    raise TypeError(f"no code for a panel {type(panel).__name__}")


def _axis(axis: Axis, count: int) -> dict[str, Any]:
    return {"name": axis.name, "labels": [*axis.labels], "count": count}


def _axes(array: NamedArray) -> dict[str, Any]:
    axes = [_axis(axis, count) for axis, count in zip(array.axes, array.values.shape, strict=True)]
    return {"axes": axes, "unit": array.unit}


@encode_panel.register
def _(panel: Heatmap, bundle: Bundle) -> dict[str, Any]:
    scale = {"low": panel.low, "high": panel.high, "diverging": panel.diverging}
    cells = {"texts": [[*row] for row in panel.texts], "marks": [[*mark] for mark in panel.marks]}
    return _axes(panel.array) | scale | cells | {"values": bundle.map(panel.array.values)}


@encode_panel.register
def _(panel: HeatmapGrid, bundle: Bundle) -> dict[str, Any]:
    scale = {"low": panel.low, "high": panel.high, "diverging": panel.diverging}
    return _axes(panel.array) | scale | bundle.grid(panel.array.values)


@encode_panel.register
def _(panel: Bars, bundle: Bundle) -> dict[str, Any]:
    return _axes(panel.array) | {"high": panel.high, "values": bundle.whole(panel.array.values)}


@encode_panel.register
def _(panel: ColoredText, bundle: Bundle) -> dict[str, Any]:
    scale = {"low": panel.low, "high": panel.high, "diverging": panel.diverging}
    return (
        _axes(panel.array)
        | scale
        | {"tokens": [*panel.tokens], "kinds": [*panel.kinds], "values": bundle.whole(panel.array.values)}
    )


@encode_panel.register
def _(panel: Lines, bundle: Bundle) -> dict[str, Any]:
    series = []
    for one in panel.series:
        arrays = {"x": one.x, "y": one.y}
        if one.band is not None:
            arrays |= {"lower": one.band[0], "upper": one.band[1]}
        numbers = {name: bundle.whole(np.asarray(part, float), "float64") for name, part in arrays.items()}
        look = {"name": one.name, "style": one.style, "color": one.color, "labels": [*one.labels]}
        series.append(look | numbers)
    axes = {"x_label": panel.x_label, "y_label": panel.y_label, "log_x": panel.log_x, "log_y": panel.log_y}
    look = {"limits": panel.limits, "equal": panel.equal, "legend": panel.legend, "size": [*panel.size]}
    return {"series": series} | axes | look


@encode_panel.register
def _(panel: Histograms, bundle: Bundle) -> dict[str, Any]:
    histograms = [
        {"name": one.name, "cut": one.cut, "note": one.note, "counts": [*map(int, one.counts)]}
        for one in panel.histograms
    ]
    edges = bundle.whole(np.asarray(panel.edges), "float64")
    axes = {"x_label": panel.x_label, "y_label": panel.y_label, "log_x": panel.log_x}
    return {"edges": edges, "color": panel.color, "histograms": histograms} | axes


@encode_panel.register
def _(panel: Images, bundle: Bundle) -> dict[str, Any]:
    rows = [
        {
            "name": row.name,
            "captions": [*map(_caption, row.captions)],
            "tiles": [None if tile is None else _tile(tile, bundle) for tile in row.tiles],
        }
        for row in panel.rows
    ]
    return {"rows": rows, "tile_size": panel.tile_size, "gap": panel.gap}


def _caption(caption: Caption) -> dict[str, str]:
    return {"text": caption.text, "role": caption.role}


def _tile(tile: Tile, bundle: Bundle) -> dict[str, Any]:
    """Return the header of an image. Its pixels are a PNG."""
    height, width = tile.pixels.shape[:2]
    header = {"height": height, "width": width, "png": bundle.add(image_png(to_image(tile.pixels)))}
    heat = None if tile.heat is None else bundle.whole(tile.heat)
    captions, marks = [*map(_caption, tile.captions)], [*map(_mark, tile.marks)]
    return header | {"captions": captions, "marks": marks, "heat": heat}


def _mark(mark: Mark) -> dict[str, Any]:
    look = {"role": mark.role, "dotted": mark.dotted, "closed": mark.closed, "numbered": mark.numbered}
    return look | {"points": mark.points.tolist(), "end": mark.end}


@encode_panel.register
def _(panel: Graph, bundle: Bundle) -> dict[str, Any]:
    nodes = [
        {"name": one.name, "lines": [*one.lines], "place": [*one.place], "role": one.role, "shape": one.shape}
        for one in panel.nodes
    ]
    edges = [
        {"source": one.source, "target": one.target, "text": one.text, "role": one.role, "bend": one.bend}
        for one in panel.edges
    ]
    return {"nodes": nodes, "edges": edges, "shape": panel.shape}


@encode_panel.register
def _(panel: Table, bundle: Bundle) -> dict[str, Any]:
    return panel.to_json()
