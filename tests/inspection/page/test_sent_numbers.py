"""What the page gets of each panel is what the panel holds: no axis, order or limit is another."""

import base64
import gzip
import io
import json
import re
import struct
from typing import Any

import numpy as np
from PIL import Image

from foveal.inspection.page.encode import encode_payload
from foveal.inspection.page.report import ReportedView, report_page
from foveal.inspection.panels import (
    Axis,
    Bars,
    ColoredText,
    Edge,
    Graph,
    Heatmap,
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
    Tile,
)
from foveal.inspection.payload import Payload

NUMBERS = np.array([[0.0, 0.5, 1.0], [0.25, 0.75, 0.125]])
AXES = Axis("unit", ("u", "v")), Axis("token")


def payload(panel: Panel) -> Payload:
    return Payload("view", "run", "title", (panel,), "caveat", "exact")


def sent(panel: Panel) -> tuple[dict[str, Any], bytes]:
    """Return the header of a panel, and the body that its references are into."""
    content = encode_payload(payload(panel)).content
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length])["panels"][0], content[8 + length :]


def part(reference: dict[str, Any], body: bytes) -> bytes:
    return body[reference["at"] : reference["at"] + reference["size"]]


def numbers(reference: dict[str, Any], body: bytes) -> list[Any]:
    kind = {"float32": "<f4", "float64": "<f8"}[reference["code"]]
    return np.frombuffer(part(reference, body), kind).reshape(reference["shape"]).tolist()


def test_bars_and_texts_have_rows_and_columns() -> None:
    array = NamedArray(NUMBERS, AXES)
    for panel in (Bars("", array, 2.0), ColoredText("", ("a", "b", "c"), array, 0.0, 2.0)):
        header, body = sent(panel)
        assert numbers(header["values"], body) == NUMBERS.tolist()
        assert header["high"] == 2.0
        assert [axis["count"] for axis in header["axes"]] == [2, 3]


def test_marks_of_a_map_are_rows_and_columns() -> None:
    header, _ = sent(Heatmap("", NamedArray(NUMBERS, AXES), -1.0, 2.0, marks=((1, 2),)))
    assert header["marks"] == [[1, 2]]
    assert (header["low"], header["high"], header["diverging"]) == (-1.0, 2.0, False)


def test_curves_have_their_bands_colors_and_scales() -> None:
    series = Series("mean", [1, 2], [3.0, 5.0], "dots", 2, ([2.0, 4.0], [6.0, 7.0]))
    header, body = sent(Lines("", (series,), "step", "loss", log_y=True, limits=(0.5, 9.0)))
    (one,) = header["series"]
    found = {name: numbers(one[name], body) for name in ("x", "y", "lower", "upper")}
    assert found == {"x": [1, 2], "y": [3, 5], "lower": [2, 4], "upper": [6, 7]}
    assert (one["style"], one["color"]) == ("dots", 2)
    assert (header["log_x"], header["log_y"], header["limits"]) == (False, True, [0.5, 9.0])


def test_histograms_have_their_bins_in_order() -> None:
    header, body = sent(Histograms("", np.array([-1.0, 0.0, 2.0]), (Histogram("x", (3, 4), 1),)))
    assert numbers(header["edges"], body) == [-1, 0, 2]
    assert (header["histograms"][0]["counts"], header["histograms"][0]["cut"]) == ([3, 4], 1)


def test_images_have_their_pixels_marks_and_heat() -> None:
    pixels = np.arange(72, dtype=np.uint8).reshape(4, 6, 3)
    points, heat = np.array([[0.0, 1.0], [2.0, 5.0]]), NUMBERS
    header, body = sent(Images("", (ImageRow((Tile(pixels, marks=(Mark(points),), heat=heat),)),)))
    (tile,) = header["rows"][0]["tiles"]
    assert (tile["height"], tile["width"]) == (4, 6)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(part(tile["png"], body)))), pixels)
    assert tile["marks"][0]["points"] == points.tolist()
    assert numbers(tile["heat"], body) == heat.tolist()


def test_arrows_have_their_source_and_target() -> None:
    nodes = Node("a", ("A",), (0, 1)), Node("b", ("B",), (2, 3.5))
    header, _ = sent(Graph("", nodes, (Edge("a", "b"),)))
    assert [(edge["source"], edge["target"]) for edge in header["edges"]] == [("a", "b")]
    assert [node["place"] for node in header["nodes"]] == [[0, 1], [2, 3.5]]


def large(values: np.ndarray) -> Panel:
    return Heatmap("", NamedArray(values, (Axis("row"), Axis("column"))), 0.0, 1.0)


def test_a_number_beside_nothing_is_seen_in_the_overview() -> None:
    values = np.full((600, 600), np.nan)
    values[4, 7] = 0.25
    header, body = sent(large(values))
    overview = np.frombuffer(part(header["values"]["overview"], body), np.uint8).reshape(300, 300)
    assert overview[2, 3] == 127, "the root of 0.25, of 254"
    assert overview[2, 4] == 255, "nothing"


def test_numbers_above_one_are_no_shares() -> None:
    header, _ = sent(large(np.full((600, 600), 2.5)))
    assert header["values"]["code"] == "float32"


def test_links_sections_and_large_arrays_of_a_report_belong_together() -> None:
    """Each view has its number in all places, and each tile that of its array among those of the view."""
    views = []
    for name, value in (("first", 0.0), ("second", 1.0)):
        values = np.zeros((600, 600))
        values[:, 512:] = value
        views.append(ReportedView(name, "", payload(large(values))))
    page = report_page("title", views, {}).decode("utf-8")
    assert re.findall(r'<a href="#(view-\d)">(\w+)</a>', page) == [("view-0", "first"), ("view-1", "second")]
    sections = re.findall(r'id="(view-\d)" data-payload="(\d)">\s*<h2>(\w+)</h2>', page)
    assert sections == [("view-0", "0", "first"), ("view-1", "1", "second")]
    stored = dict(re.findall(r'id="(payload-[-\d]+)">([^<]*)<', page))
    for number, view in enumerate(views):
        encoded = encode_payload(view.payload)
        contents = {f"payload-{number}": encoded.content}
        contents |= {f"payload-{number}-{blob}": made() for blob, made in enumerate(encoded.blobs)}
        assert contents == {name: gzip.decompress(base64.b64decode(stored[name])) for name in contents}
