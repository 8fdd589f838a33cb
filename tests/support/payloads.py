"""A payload with a panel of each kind, and one with hostile texts in every place."""

from collections.abc import Callable
from typing import Literal

import numpy as np

from foveal.inspection.panels import (
    Axis,
    Bars,
    Caption,
    ColoredText,
    Edge,
    Graph,
    Heatmap,
    HeatmapGrid,
    Histogram,
    Histograms,
    ImageRow,
    Images,
    Lines,
    Mark,
    NamedArray,
    Node,
    Panel,
    Series,
    Table,
    Tile,
)
from foveal.inspection.payload import Payload

ENDS: tuple[Literal["", "dot", "cross", "star", "arrow"], ...] = ("", "dot", "cross", "star", "arrow")
"""What a mark may end with."""
WORDS = ("The", "cat", "sat", "on", "the", "mat", ".")
SCRIPT = "window.broken = (window.broken || 0) + 1"


def plain(text: str) -> str:
    """Return a text unchanged."""
    return text


def attention(layers: int = 3, heads: int = 4, tokens: int = len(WORDS), seed: int = 0) -> np.ndarray:
    """Return causal attention weights; keys after the query are NaN. No two heads have the same largest
    weight, so that a head on a scale of its own has other colors."""
    scores = np.random.default_rng(seed).normal(0, 2, (layers, heads, tokens, tokens)).astype(np.float32)
    weights = np.tril(np.exp(scores))
    weights /= weights.sum(-1, keepdims=True)
    weights *= np.linspace(0.4, 0.9, layers * heads, dtype=np.float32).reshape(layers, heads, 1, 1)
    weights[..., ~np.tri(tokens, dtype=bool)] = np.nan
    return weights


def every_panel(spoil: Callable[[str], str] = plain) -> tuple[Panel, ...]:
    """Return a panel of each kind, with all that it may hold. `spoil` changes each of its texts."""
    draw = np.random.default_rng(1)
    words = tuple(map(spoil, WORDS))
    query, key = Axis(spoil("query"), words), Axis(spoil("key"), words)
    layer, head, unit, step = (Axis(spoil(name)) for name in ("layer", "head", "unit", "step"))
    weights = attention()
    signed, shares, values = draw.normal(0, 1, (3, 4)), draw.random((2, 3)), draw.uniform(-1, 1, (2, 7))
    signed[0, :2] = shares[:, 2] = np.nan, np.inf
    values[0, 6] = np.nan
    return (
        Heatmap(spoil("one head"), NamedArray(weights[1, 2], (query, key), spoil("weight")), 0.0, 1.0),
        HeatmapGrid(
            spoil("all heads"), NamedArray(weights, (layer, head, query, key), spoil("weight")), 0.0, 1.0
        ),
        Heatmap(
            spoil("signed"),
            NamedArray(signed, (unit, step)),
            -3.0,
            3.0,
            tuple(tuple(spoil(f"{row}{column}") for column in range(4)) for row in range(3)),
            ((1, 2),),
        ),
        Lines(spoil("loss"), _curves(spoil, words), spoil("step"), spoil("nats")),
        Histograms(
            spoil("sizes"),
            np.linspace(-1, 1, 9),
            (
                Histogram(spoil("layer 1"), (1, 2, 3, 4, 90, 3, 2, 1), 4, spoil("note")),
                Histogram(spoil("layer 2"), (0, 0, 0, 0, 0, 0, 0, 5)),
            ),
        ),
        Bars(
            spoil("shares"),
            NamedArray(shares, (Axis(spoil("split"), words[:2]), Axis(spoil("class"), words[:3]))),
        ),
        ColoredText(
            spoil("a cell"),
            words,
            NamedArray(values, (Axis(spoil("unit"), words[:2]), Axis(spoil("token"), words))),
            -1.0,
            1.0,
        ),
        _images(spoil),
        Graph(
            spoil("graph"),
            (Node(words[0], words[:2], (0.0, 0.0)), Node(words[1], words[1:3], (1.0, 1.0), "highlight")),
            (Edge(words[0], words[1], spoil("edge")),),
        ),
        Table(spoil("table"), words[:2], tuple((spoil(str(row)), words[row % 7]) for row in range(60))),
    )


def panel_of_kind(kind: str, spoil: Callable[[str], str] = plain) -> Panel:
    """Return the panel of a kind, by the name of its class in small letters."""
    return {type(panel).__name__.lower(): panel for panel in every_panel(spoil)}[kind]


def _curves(spoil: Callable[[str], str], words: tuple[str, ...]) -> tuple[Series, ...]:
    """Return a curve, one with a band, and rings."""
    nothing = float("nan")
    return (
        Series(
            spoil("held out"), [1.0, 2.0, 3.0, 4.0], [3.0, 2.5, nothing, 2.25], "dots", 1, labels=words[:4]
        ),
        Series(spoil("mean"), [1, 2, 3], [2.25, nothing, 2.75], band=([2.0, 2.0, 2.0], [2.5, 2.75, 3.0])),
        Series(spoil("chosen"), [1, 3], [2.25, 2.5], "ring", labels=words[:2]),
    )


def _images(spoil: Callable[[str], str]) -> Images:
    """Return an image in color with marks of every kind and numbers over it, gray ones, and empty places."""
    pixels = np.random.default_rng(2).integers(0, 255, (6, 8, 3)).astype(np.uint8)
    marks = tuple(
        Mark(
            np.array([[0.0, 0.0], [1.0, 6.0], [4.0, 6.0]]),
            closed=end == "",
            numbered=end == "dot",
            end=end,
            dotted=end == "star",
        )
        for end in ENDS
    )
    tile = Tile(pixels, (Caption(spoil("cat"), "correct"),), marks, np.array([[0.0, 0.25], [0.5, 1.0]]))
    gray = Tile(pixels[..., :1], (Caption(spoil("dog"), "incorrect"),))
    first = ImageRow((tile, None, gray), spoil("row"), (Caption(spoil("below")),))
    return Images(spoil("images"), (first, ImageRow((None, gray))))


def payload(spoil: Callable[[str], str] = plain) -> Payload:
    """Return a payload with a panel of each kind."""
    facts = ((spoil("headline"), spoil("head 2 of layer 1")),)
    return Payload(
        spoil("demo"), spoil("run"), spoil("a title"), every_panel(spoil), spoil("a caveat"), "exact", facts
    )


def hostile_strings() -> list[str]:
    """Return texts that would run `SCRIPT`, or break the page, where they are taken for markup or code."""
    elements = [
        f"<script>{SCRIPT}</script>",
        f"</script><script>{SCRIPT}</script>",
        f"</style><script>{SCRIPT}</script>",
        f"</title><script>{SCRIPT}</script>",
        f"--><script>{SCRIPT}</script>",
        f"<!--<script>{SCRIPT}</script>",
        f"<!--<script><script>{SCRIPT}</script>",
        f"]]><script>{SCRIPT}</script>",
        f"<img src=x onerror='{SCRIPT}'>",
        f"<svg onload='{SCRIPT}'>",
        f"<svg><script>{SCRIPT}</script></svg>",
        f"<iframe srcdoc='<script>{SCRIPT}</script>'>",
        f"<details open ontoggle='{SCRIPT}'>",
        f"<body onload='{SCRIPT}'>",
        f"<a href='javascript:{SCRIPT}' autofocus onfocus='{SCRIPT}'>x</a>",
        f"<math><mtext><table><mglyph><style><img src=x onerror='{SCRIPT}'>",
        f"<template><script>{SCRIPT}</script></template>",
        f"<input autofocus onfocus='{SCRIPT}'>",
        f"javascript:{SCRIPT}",
        f"data:text/html,<script>{SCRIPT}</script>",
        f"${{{SCRIPT}}}",
        f"{{{{{SCRIPT}}}}}",
        f"`;{SCRIPT};`",
        f"\\u003cscript\\u003e{SCRIPT}",
        f"&lt;script&gt;{SCRIPT}&lt;/script&gt;",
        f"<base href='http://127.0.0.1:9/'><script>{SCRIPT}</script>",
        f"<meta http-equiv=refresh content='0;url=javascript:{SCRIPT}'>",
        f"<link rel=stylesheet href='http://127.0.0.1:9/x.css' onerror='{SCRIPT}'>",
        "\x00<b>\x1b[31m",
        "\u202eright to left\u202c שלום",
        "e" + "\u0301" * 40,
        "\ud800 half",
        "🙂👩‍👩‍👧‍👦",
        "=cmd|' /C calc'!A0",
        "x" * 2000,
        " \n\r\t\u2028\u2029",
    ]
    around = ["", '"', "'", "\\", '\\"', "\n", "</", "\x00", "\u2028"]
    return [f"{before}{text}" for before in around for text in elements]
