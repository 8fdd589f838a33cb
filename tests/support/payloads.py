"""A payload with a panel of each kind, and one with hostile texts in every place."""

from collections.abc import Callable

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

WORDS = ("The", "cat", "sat", "on", "the", "mat", ".")
SCRIPT = "window.broken = (window.broken || 0) + 1"


def plain(text: str) -> str:
    """Return a text unchanged."""
    return text


def attention(layers: int = 3, heads: int = 4, tokens: int = len(WORDS), seed: int = 0) -> np.ndarray:
    """Return causal attention weights; keys after the query are NaN."""
    scores = np.random.default_rng(seed).normal(0, 2, (layers, heads, tokens, tokens)).astype(np.float32)
    weights = np.tril(np.exp(scores))
    weights /= weights.sum(-1, keepdims=True)
    weights[..., ~np.tri(tokens, dtype=bool)] = np.nan
    return weights


def every_panel(spoil: Callable[[str], str] = plain) -> tuple[Panel, ...]:
    """Return a panel of each kind. `spoil` changes each of its texts."""
    draw = np.random.default_rng(1)
    words = tuple(map(spoil, WORDS))
    query, key = Axis("query", words), Axis("key", words)
    weights = attention()
    edges = np.linspace(-1, 1, 9)
    pixels = draw.integers(0, 255, (6, 8, 3)).astype(np.uint8)
    heat = np.array([[0.0, 0.25], [0.5, 1.0]])
    mark = Mark(np.array([[1.0, 1.0], [4.0, 6.0]]), end="arrow")
    tile = Tile(pixels, (Caption(spoil("cat"), "correct"),), (mark,), heat)
    steps, losses = [1.0, 2.0, 3.0, 4.0], [3.0, 2.5, float("nan"), 2.25]
    curve = Series(spoil("held out"), steps, losses, "dots", 1, labels=words[:4])
    layers, split = (Axis("layer"), Axis("head")), Axis("split", words[:2])
    counts = Histogram(spoil("layer 1"), (1, 2, 3, 4, 90, 3, 2, 1), 4, spoil("note"))
    return (
        Heatmap(spoil("one head"), NamedArray(weights[1, 2], (query, key), spoil("weight")), 0.0, 1.0),
        HeatmapGrid(
            spoil("all heads"),
            NamedArray(weights, (*layers, query, key), "weight"),
            0.0,
            1.0,
        ),
        Heatmap(
            "signed",
            NamedArray(draw.normal(0, 1, (3, 4)), (Axis(spoil("unit")), Axis("step"))),
            -3.0,
            3.0,
            tuple(tuple(spoil(f"{row}{column}") for column in range(4)) for row in range(3)),
            ((1, 2),),
        ),
        Lines(spoil("loss"), (curve,), spoil("step"), spoil("nats")),
        Histograms("sizes", edges, (counts,)),
        Bars("shares", NamedArray(draw.random((2, 3)), (split, Axis("class", words[:3])))),
        ColoredText(
            spoil("a cell"),
            words,
            NamedArray(draw.uniform(-1, 1, (2, 7)), (Axis("unit", words[:2]), Axis("token", words))),
            -1.0,
            1.0,
        ),
        Images(spoil("images"), (ImageRow((tile, None, tile), spoil("row"), (Caption(spoil("below")),)),)),
        Graph(
            spoil("graph"),
            (Node(words[0], words[:2], (0.0, 0.0)), Node(words[1], words[1:3], (1.0, 1.0), "highlight")),
            (Edge(words[0], words[1], spoil("edge")),),
        ),
        Table(spoil("table"), words[:2], tuple((spoil(str(row)), words[row % 7]) for row in range(60))),
    )


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
