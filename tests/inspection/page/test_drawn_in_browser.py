"""What the page draws, in a real Chromium: each color, bar and point stands where the payload says."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from matplotlib import colormaps

from foveal.inspection.page.report import ReportedView, report_page
from foveal.inspection.panels import Bars, ColoredText, Graph, Histograms, Images, Lines
from tests.support.browser import launched_browser, watched_page
from tests.support.payloads import attention, panel_of_kind, payload

CANVAS_PIXEL = """const pixel = (canvas, x, y) => {
    const scale = canvas.width / canvas.clientWidth;
    return [...canvas.getContext("2d").getImageData(x * scale, y * scale, 1, 1).data].slice(0, 3);
};"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = tmp_path_factory.mktemp("drawn") / "x.html"
    path.write_bytes(report_page("a report", [ReportedView("demo", "summary", payload())], {}))
    with launched_browser() as browser, watched_page(browser, viewport={"width": 1100, "height": 900}) as one:
        one.goto(path.as_uri())
        one.wait_for_selector("foveal-table tbody tr")
        one.wait_for_selector("foveal-images img")
        one.wait_for_timeout(500)
        yield one


def numbers(page: Any, selector: str, *names: str) -> np.ndarray:
    """Return attributes of the elements of a selector as numbers, a row for each element."""
    script = "(all, names) => all.map(one => names.map(name => Number(one.getAttribute(name))))"
    return np.array(page.locator(selector).evaluate_all(script, [*names]))


def affine(drawn: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the slope and the start of the line that takes the values to their places, and check that it
    does."""
    slope, start = np.polyfit(values, drawn, 1)
    np.testing.assert_allclose(drawn, slope * values + start, atol=0.06)
    return np.array([slope, start])


def as_bytes(color: str) -> list[int]:
    """Return the numbers of a color of CSS, `rgb(1, 2, 3)`."""
    return [int(part) for part in color[4:-1].split(",")]


def of_map(share: float, name: str) -> np.ndarray:
    return np.array([round(255 * part) for part in colormaps[name](share)[:3]])


def test_every_map_of_a_grid_stands_in_its_row_and_column(page: Any) -> None:
    """The middle of each visible cell of each small map has the color of its weight, on one scale."""
    script = f"""(element) => {{
        {CANVAS_PIXEL}
        const left = parseFloat(element.cursor.style.left), top = parseFloat(element.cursor.style.top);
        const [layers, heads, rows, columns] = element.panel.overview.shape;
        const apart = element.side + 6, cell = element.side / columns;
        return [...Array(layers).keys()].map((layer) => [...Array(heads).keys()].map((head) =>
            [...Array(rows).keys()].map((row) => [...Array(columns).keys()].map((column) => pixel(
                element.canvas,
                left + head * apart + (column + 0.5) * cell,
                top + layer * apart + (row + 0.5) * cell,
            )))));
    }}"""
    drawn = np.array(page.locator("foveal-heatmap-grid").evaluate(script))
    weights = attention()
    expected = np.array(
        [[[[of_map(w, "Blues") for w in row] for row in one] for one in row] for row in weights]
    )
    visible = ~np.isnan(weights)
    assert np.abs(drawn - expected)[visible].max() <= 2


def test_bars_are_as_high_as_their_numbers(page: Any) -> None:
    panel = panel_of_kind("bars")
    assert isinstance(panel, Bars)
    values = panel.array.values
    for series, row in enumerate(values):
        x, y, height = numbers(page, f"foveal-bars rect.bar.series-{series}", "x", "y", "height").T
        shown = row[np.isfinite(row)]
        assert len(height) == len(shown)
        assert (np.diff(x) > 0).all()
        np.testing.assert_allclose(height / height[0], shown / shown[0], rtol=1e-3)
        np.testing.assert_allclose(y + height, y[0] + height[0], atol=0.01)
    first, second = (
        numbers(page, f"foveal-bars rect.bar.series-{series}", "height")[0, 0] for series in (0, 1)
    )
    assert first / second == pytest.approx(values[0, 0] / values[1, 0], rel=1e-3), "one scale"


def test_curves_run_through_their_points(page: Any) -> None:
    panel = panel_of_kind("lines")
    assert isinstance(panel, Lines)
    first, banded, rings = panel.series
    dots = numbers(page, "foveal-lines svg:not(.swatch) circle.dots", "cx", "cy")
    known = np.isfinite(first.y)
    x, y = np.array(first.x)[known], np.array(first.y)[known]
    across, down = affine(dots[:, 0], x), affine(dots[:, 1], y)
    assert across[0] > 0 > down[0], "to the right, and up"
    path = page.locator("foveal-lines svg:not(.swatch) path.dots").get_attribute("d")
    assert path.count("M") == 2, "nothing is drawn through the point that is missing"
    points = [[float(part) for part in one.split()] for one in path.replace("L", "M").split("M")[1:]]
    np.testing.assert_allclose(points, dots, atol=0.06)
    ring = numbers(page, "foveal-lines svg:not(.swatch) circle.ring", "cx", "cy")
    np.testing.assert_allclose(ring[:, 0], np.polyval(across, rings.x), atol=0.2)
    np.testing.assert_allclose(ring[:, 1], np.polyval(down, rings.y), atol=0.2)
    polygon = page.locator("foveal-lines polygon.band").get_attribute("points")
    corners = np.array([[float(part) for part in point.split(",")] for point in polygon.split()])
    assert banded.band is not None
    low, high = banded.band
    limits = [*zip(banded.x, high, strict=True), *reversed([*zip(banded.x, low, strict=True)])]
    expected = [[np.polyval(across, x), np.polyval(down, y)] for x, y in limits]
    np.testing.assert_allclose(corners, expected, atol=0.2)


def test_bins_are_as_high_as_their_counts(page: Any) -> None:
    """The bin that is cut off ends where the picture does; the others have one scale."""
    panel = panel_of_kind("histograms")
    assert isinstance(panel, Histograms)
    groups = page.locator("foveal-histograms svg > g")
    for number, one in enumerate(panel.histograms):
        group = f"foveal-histograms svg > g >> nth={number}"
        x, y, height = numbers(page, f"{group} >> rect.bar", "x", "y", "height").T
        counts = np.array(one.counts)
        assert affine(x, panel.edges[:-1])[0] > 0
        assert x[0] == 0
        whole = np.arange(len(counts)) != one.cut
        unit = height[whole].max() / counts[whole].max()
        np.testing.assert_allclose(height[whole], unit * counts[whole], atol=0.01)
        assert height.max() == height[counts.argmax()] < 1.4 * height[whole].max(), "the others are seen"
        assert numbers(page, f"{group} >> rect.cut", "x").size == (one.cut is not None)
        np.testing.assert_allclose(y + height, y[0] + height[0], atol=0.01)
    assert groups.count() == len(panel.histograms)


def test_tokens_have_the_colors_of_the_chosen_row(page: Any) -> None:
    panel = panel_of_kind("coloredtext")
    assert isinstance(panel, ColoredText)
    read = "all => all.map(one => getComputedStyle(one).backgroundColor)"
    for row, values in enumerate(panel.array.values):
        page.locator("foveal-colored-text select").select_option(str(row))
        found = page.locator("foveal-colored-text .colored-text .token").evaluate_all(read)
        for color, value in zip(found, values, strict=True):
            if np.isnan(value):
                assert color == "rgba(0, 0, 0, 0)"
            else:
                expected = of_map((value - panel.low) / (panel.high - panel.low), "RdBu_r")
                assert np.abs(np.array(as_bytes(color)) - expected).max() <= 3


def test_images_have_their_pixels_their_heat_and_their_marks(page: Any) -> None:
    panel = panel_of_kind("images")
    assert isinstance(panel, Images)
    tile, gray, _ = panel.tiles()
    script = """(image) => {
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
        const context = canvas.getContext("2d");
        context.drawImage(image, 0, 0);
        const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
        return [[canvas.height, canvas.width], [...data]];
    }"""
    for number, one in enumerate((tile, gray)):
        shape, data = page.locator(f"foveal-images img >> nth={number}").evaluate(script)
        pixels = np.array(data).reshape(*shape, 4)[..., :3]
        np.testing.assert_array_equal(pixels, np.broadcast_to(one.pixels, (*one.pixels.shape[:2], 3)))
    heat = page.locator("foveal-images canvas.heat").evaluate(
        "one => [...one.getContext('2d').getImageData(0, 0, one.width, one.height).data]"
    )
    assert tile.heat is not None
    colors = np.array(heat).reshape(*tile.heat.shape, 4)[..., :3]
    expected = [[of_map(value, "inferno") for value in row] for row in tile.heat]
    assert np.abs(colors - np.array(expected)).max() <= 16, "between eight stops of the map"
    width = page.locator("foveal-images .picture >> nth=0").evaluate("one => parseFloat(one.style.width)")
    for place, mark in enumerate(tile.marks):
        shape = "polygon.closed" if mark.closed else f"polyline >> nth={place - 1}"
        text = page.locator(f"foveal-images svg.marks >> {shape}").get_attribute("points")
        points = np.array([[float(part) for part in point.split(",")] for point in text.split()])
        scale = width / tile.pixels.shape[1]
        np.testing.assert_allclose(points, (mark.points[:, ::-1] + 0.5) * scale, atol=0.01)


def test_boxes_stand_in_their_columns_and_rows_with_arrows_between(page: Any) -> None:
    panel = panel_of_kind("graph")
    assert isinstance(panel, Graph)
    boxes = numbers(page, "foveal-graph .node rect", "x", "y", "width", "height")
    places = np.array([node.place for node in panel.nodes])
    assert np.array_equal(np.sign(boxes[1, :2] - boxes[0, :2]), np.sign(places[1] - places[0]))
    line = page.locator("foveal-graph polyline.edge").get_attribute("points")
    start, end = np.array([float(part) for part in line.replace(" ", ",").split(",")]).reshape(-1, 2)
    for point, box in ((start, boxes[0]), (end, boxes[1])):
        assert (point >= box[:2] - 1).all()
        assert (point <= box[:2] + box[2:] + 1).all()
