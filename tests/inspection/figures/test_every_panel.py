"""Every kind of panel is drawn in every format, whatever its texts hold; JSON has only finite numbers."""

import io
import json
from typing import get_args
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from foveal.core.errors import UserError
from foveal.inspection.figures.compose import FORMATS, RENDERERS, draw_payload
from foveal.inspection.files import payload_file
from foveal.inspection.panels import Panel, Table
from foveal.inspection.payload import Payload
from tests.support.payloads import every_panel, panel_of_kind

HOSTILE = (
    "</script><b>&amp; שלום 😀 e\u0301\u0302 \x00\x1b[31m \ud800 \ufffe $x^2$ \\frac \u202e"
    + "w" * 200
    + "\nz"
)
"""Markup, right to left, emoji, combining marks, NUL, an escape, a lone surrogate, no character, math, a long
word, a line break."""
KINDS = sorted({type(one).__name__.lower() for one in every_panel()})


def payload(*panels: Panel, title: str = "titled") -> Payload:
    return Payload("view", "runs/a", title, panels, "a caveat", "exact", (("fact", title),))


def panel(kind: str, text: str) -> Panel:
    """Return a panel whose texts all end with `text`."""
    return panel_of_kind(kind, lambda name: name + text)


def svg_text(content: bytes) -> str:
    return " ".join(ElementTree.fromstring(content).itertext())


def test_the_examples_are_of_every_kind() -> None:
    kinds = {*map(type, every_panel())}
    assert kinds == {*RENDERERS} == {*get_args(Panel)}


@pytest.mark.parametrize("text", ["word", HOSTILE], ids=["plain", "hostile"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_format_is_drawn(kind: str, text: str) -> None:
    shown = payload(panel(kind, text), title=text)
    files = {name: draw_payload(shown, name) for name in FORMATS}
    with Image.open(io.BytesIO(files["png"])) as picture:
        assert np.asarray(picture.convert("L")).min() < 128, "something is dark"
    assert files["pdf"].startswith(b"%PDF")
    words = svg_text(files["svg"])
    assert "exact numbers; a caveat" in words
    assert ("word" if text == "word" else "</script>") in words.replace("\xa0", " ")
    assert b"<script" not in files["svg"]


@pytest.mark.parametrize("kind", KINDS)
def test_json_is_finite_and_has_the_texts(kind: str) -> None:
    written = payload_file(payload(panel(kind, HOSTILE), title=HOSTILE), ".json")
    assert b"<" not in written.replace(b"</script><b>", b""), "ASCII, and texts as they are"
    content = json.loads(written, parse_constant=pytest.fail)
    assert content["title"] == HOSTILE
    (shown,) = content["panels"]
    assert shown["kind"] == kind
    assert shown["sentence"]


def test_a_table_is_drawn_only_where_nothing_else_is() -> None:
    words = svg_text(draw_payload(payload(panel("lines", "line"), Table("", ("cell",), ())), "svg"))
    assert "line" in words
    assert "cell" not in words
    assert "cell" in svg_text(draw_payload(payload(Table("", ("cell",), ())), "svg"))


def test_the_same_payload_is_the_same_bytes() -> None:
    shown = payload(*(panel(kind, "word") for kind in ("lines", "heatmap")))
    assert all(draw_payload(shown, name) == draw_payload(shown, name) for name in FORMATS)


def test_a_picture_that_is_too_large_is_refused() -> None:
    with pytest.raises(UserError, match="runs/a: a picture of the view view would be larger than 200 inches"):
        draw_payload(payload(*[panel("lines", "word")] * 400))


def test_a_thumbnail_is_small() -> None:
    with Image.open(io.BytesIO(draw_payload(payload(panel("heatmap", "word")), thumbnail=True))) as picture:
        assert picture.width <= 480
