"""Payloads as bytes for the browser, and the report: what is in them, and how large they are."""

import base64
import gzip
import json
import re
import struct
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
import pytest

from foveal.inspection.page.encode import encode_payload
from foveal.inspection.page.encoded import EncodedPayload
from foveal.inspection.page.modules import (
    IMPORT,
    import_order,
    module_text,
    one_script,
    static_files,
    style_sheet,
)
from foveal.inspection.page.report import ReportedView, report_page
from foveal.inspection.panels import Axis, Graph, Heatmap, HeatmapGrid, NamedArray, Panel
from foveal.inspection.payload import Payload
from tests.support.payloads import attention, every_panel, hostile_strings, payload

FORBIDDEN = re.compile(
    r"^\s*import\b|\bfrom \"|\beval\(|innerHTML|outerHTML|insertAdjacent|document\.write", re.MULTILINE
)

FORBIDDEN = re.compile(
    r"^\s*import\b|\bfrom \"|\beval\(|innerHTML|outerHTML|insertAdjacent|document\.write", re.MULTILINE
)
DEFINITION = re.compile(r"^(?:export )?(?:async )?(?:function\*?|class|const|let) (\w+)", re.MULTILINE)
ENTRIES = ("report",)


def decode(encoded: EncodedPayload) -> tuple[dict[str, Any], bytes]:
    """Return the header and the body, by the description of the format alone."""
    (length,) = struct.unpack("<Q", encoded.content[:8])
    assert length % 8 == 0
    return json.loads(encoded.content[8 : 8 + length]), encoded.content[8 + length :]


def add_text(name: str, text: str) -> str:
    return f"{name}{text}"


def numbers(reference: dict[str, Any], content: bytes) -> np.ndarray:
    if "at" in reference:
        content = content[reference["at"] : reference["at"] + reference["size"]]
    if reference["code"] == "sqrt8":
        codes = np.frombuffer(content, np.uint8).astype(float)
        values = np.where(codes == 255, np.nan, (codes / 254) ** 2)
    else:
        values = np.frombuffer(content, {"float32": "<f4", "float64": "<f8"}[reference["code"]]).astype(float)
    return values.reshape(reference["shape"])


def encoded_panel(panel: Panel) -> tuple[dict[str, Any], EncodedPayload, bytes]:
    encoded = encode_payload(Payload("view", "run", "title", (panel,), "caveat", "exact"))
    header, body = decode(encoded)
    return header["panels"][0], encoded, body


def test_every_kind_of_panel_has_its_numbers() -> None:
    panels = every_panel()
    header, body = decode(encode_payload(payload()))
    assert [panel["sentence"] for panel in header["panels"]] == [panel.sentence() for panel in panels]
    one_head, grid, signed, lines, *_ = header["panels"]
    for place, panel in ((0, one_head), (2, signed)):
        drawn = panels[place]
        assert isinstance(drawn, Heatmap)
        np.testing.assert_array_equal(numbers(panel["values"], body), drawn.array.values.astype("f4"))
    maps = [[numbers(one, body) for one in row] for row in grid["maps"]]
    np.testing.assert_array_equal(np.array(maps), attention())
    np.testing.assert_array_equal(numbers(grid["overview"], body), attention())
    np.testing.assert_array_equal(numbers(lines["series"][0]["y"], body), [3.0, 2.5, np.nan, 2.25])
    tile = header["panels"][7]["rows"][0]["tiles"][0]
    assert body[tile["png"]["at"] :][:4] == b"\x89PNG"


SENT_AS = {"array": "values"}
"""The names in the header of fields that have another there."""


def test_no_field_of_a_panel_is_forgotten() -> None:
    """A new field of a panel has to be sent, or the page draws something else than pictures do."""
    header, _ = decode(encode_payload(payload()))
    for panel, sent in zip(every_panel(), header["panels"], strict=True):
        names = {SENT_AS.get(field.name, field.name) for field in fields(panel)}
        if isinstance(panel, HeatmapGrid):
            names = names - {"values"} | {"maps"}
        assert names - {*sent} == set(), type(panel)
        if isinstance(panel, Graph):
            for part, one in ((panel.nodes, sent["nodes"]), (panel.edges, sent["edges"])):
                assert {field.name for field in fields(part[0])} == {*one[0]}


def test_a_large_map_is_an_overview_and_tiles() -> None:
    values = np.random.default_rng(0).random((1030, 700)) ** 8
    values[1000:, :9] = np.nan
    panel, encoded, body = encoded_panel(
        Heatmap("", NamedArray(values, (Axis("query"), Axis("key"))), 0.0, 1.0)
    )
    reference = panel["values"]
    tiles = [[numbers(one, encoded.blobs[one["blob"]]()) for one in row] for row in reference["tiles"]]
    assert [[tile.shape for tile in row] for row in tiles] == [
        [(512, 512), (512, 188)],
        [(512, 512), (512, 188)],
        [(6, 512), (6, 188)],
    ]
    np.testing.assert_allclose(np.block(tiles), values, atol=1 / 254)
    assert reference["pool"] == 3
    overview = numbers(reference["overview"], body)
    np.testing.assert_allclose(overview[10, 20], values[30:33, 60:63].max(), atol=1 / 254)
    assert np.isnan(overview[-5, 0])
    assert overview.shape == (344, 234)
    assert len(encoded.content) < 200_000


def test_the_largest_of_a_square_is_the_farthest_from_zero() -> None:
    values = np.zeros((600, 600))
    values[5, 7], values[5, 6] = -4.0, 3.0
    panel, encoded, body = encoded_panel(Heatmap("", NamedArray(values, (Axis("a"), Axis("b"))), -4.0, 4.0))
    overview = numbers(panel["values"]["overview"], body)
    assert overview[2, 3] == -4.0
    assert panel["values"]["tiles"][0][0]["code"] == "float32"
    assert numbers(panel["values"]["tiles"][0][0], encoded.blobs[0]())[5, 6] == 3.0


def test_an_attention_of_12_layers_fits_the_wire() -> None:
    """512 tokens, 12 heads: 530 MB as JSON. One of 12 layers is measured."""
    weights = attention(1, 12, 512)
    axes = (Axis("layer"), Axis("head"), Axis("query"), Axis("key"))
    _, encoded, _ = encoded_panel(HeatmapGrid("", NamedArray(weights, axes), 0.0, 1.0))
    parts = [encoded.content, *(blob() for blob in encoded.blobs)]
    assert 12 * sum(len(gzip.compress(part, 4)) for part in parts) < 15e6


def test_modules_join_to_one_script() -> None:
    """No name is defined twice, and nothing is imported from elsewhere."""
    for name, (kind, content) in static_files().items():
        if kind == "text/javascript":
            rest = IMPORT.sub("", content.decode("utf-8"))
            assert not FORBIDDEN.search(rest), name
    for entry in ENTRIES:
        text = "\n".join(map(module_text, import_order(entry)))
        names = DEFINITION.findall(text)
        assert len(names) == len({*names}) > 80, entry
        assert "import {" not in one_script(entry)


def test_the_page_is_small() -> None:
    contents = [content for _, content in static_files().values()]
    assert sum(len(gzip.compress(content)) for content in contents) < 150_000
    assert "http" not in style_sheet()


@pytest.mark.parametrize("text", ["</script><script>x()</script>", "<!--", "<b>"])
def test_a_report_holds_data_as_text(text: str) -> None:
    view = ReportedView(text, text, payload(lambda name: f"{name}{text}"))
    page = report_page(text, [view, view], {text: text}).decode("utf-8")
    assert text not in page
    assert page.count("<script") == 3
    stored = re.search(r'id="payload-0">([^<]*)</script>', page)
    assert stored is not None
    assert gzip.decompress(base64.b64decode(stored[1])) == encode_payload(view.payload).content


def test_hostile_strings_are_encoded() -> None:
    strings = hostile_strings()
    assert len(strings) > 300
    for text in strings[:: len(strings) // 12]:
        header, _ = decode(encode_payload(payload(partial(add_text, text=text))))
        assert header["title"] == f"a title{text}"
        assert report_page(text, [ReportedView(text, "", payload())], {text: text})
