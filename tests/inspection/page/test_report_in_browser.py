"""A report in a real Chromium, from disk: what is read on the screen are the numbers of the payload."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveal.inspection.page.modules import STATIC
from foveal.inspection.page.report import ReportedView, report_page
from foveal.inspection.panels import Axis, Bars, ColoredText, Heatmap, NamedArray, Table
from foveal.inspection.payload import Payload
from tests.support.browser import (
    announced,
    as_announced,
    launched_browser,
    press,
    tool_path,
    violations,
    watched_page,
)
from tests.support.payloads import WORDS, attention, every_panel, hostile_strings, payload

ONE_HEAD, GRID = "foveal-heatmap:nth-of-type(1)", "foveal-heatmap-grid"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched_browser() as one:
        yield one


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(tmp_path_factory.mktemp("report") / "x.html", payload())


def write(path: Path, *payloads: Payload) -> str:
    path.write_bytes(report_page("a report", [ReportedView("demo", "summary", one) for one in payloads], {}))
    return path.as_uri()


@pytest.fixture
def page(browser: Any, report: str) -> Iterator[Any]:
    with watched_page(browser, viewport={"width": 1100, "height": 900}) as one:
        one.goto(report)
        one.wait_for_selector(".caveat")
        yield one


def pixel(page: Any, panel: str, row: int, column: int) -> list[int]:
    """Return the color in the middle of a cell, by the place of the cursor on it."""
    script = """(element, [row, column]) => {
        const view = element.view, canvas = view.canvas, scale = canvas.width / canvas.clientWidth;
        const x = view.corner.x + (column + 0.5) * view.cell, y = view.corner.y + (row + 0.5) * view.cell;
        return [...canvas.getContext("2d").getImageData(x * scale, y * scale, 1, 1).data];
    }"""
    color: list[int] = page.locator(panel).evaluate(script, [row, column])
    return color[:3]


def palette(share: float, name: str = "Blues") -> list[int]:
    from matplotlib import colormaps

    return [round(255 * part) for part in colormaps[name](share)[:3]]


def test_cells_are_announced_and_drawn(page: Any) -> None:
    """The values are those of the tensor; the colors those of matplotlib."""
    weights = attention()[1, 2]
    page.locator(f"{ONE_HEAD} .map").focus()
    for row, column in ((0, 0), (2, 1), (5, 4), (6, 6), (3, 5)):
        press(page, "Control+Home", *["ArrowDown"] * row, *["ArrowRight"] * column)
        value = as_announced(float(weights[row, column]))
        expected = f"query '{WORDS[row]}', key '{WORDS[column]}': {value} weight"
        assert announced(page, ONE_HEAD) == expected
        if not np.isnan(weights[row, column]):
            color = pixel(page, ONE_HEAD, row, column)
            assert np.abs(np.subtract(color, palette(float(weights[row, column])))).max() <= 2


def test_heads_of_the_grid(page: Any) -> None:
    page.locator(f"{GRID} .grid").focus()
    press(page, "]", "]", ".")
    largest = as_announced(float(np.nanmax(attention()[2, 1])))
    assert announced(page, GRID) == f"layer 2, head 1, largest {largest} weight"
    press(page, "Enter", "ArrowDown", "ArrowDown", "ArrowRight")
    value = as_announced(float(attention()[2, 1, 2, 1]))
    assert announced(page, GRID) == f"layer 2, head 1, query 'sat', key 'cat': {value} weight"
    press(page, "[", ",")
    assert page.locator(f"{GRID} h4").inner_text() == "layer 1, head 0"
    press(page, "ArrowRight")
    value = as_announced(float(attention()[1, 0, 2, 2]))
    assert announced(page, GRID) == f"layer 1, head 0, query 'sat', key 'sat': {value} weight"


@pytest.mark.slow
def test_tables_equal_the_payload(page: Any) -> None:
    panels = every_panel()
    page.locator(f"{ONE_HEAD} .map").focus()
    press(page, "t")
    rows = page.locator(f"{ONE_HEAD} tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    weights = attention()[1, 2]
    assert rows == [
        [word, *(as_announced(float(value)) for value in weights[place])] for place, word in enumerate(WORDS)
    ]
    press(page, "t")
    assert page.locator(f"{ONE_HEAD} .map").is_visible()
    counts = {"foveal-bars": 3, "foveal-histograms": 8, "foveal-colored-text": 7, "foveal-lines": 9}
    for kind, count in counts.items():
        page.locator(f"{kind} [aria-pressed][title*=table]").click()
        page.wait_for_timeout(100)
        assert page.locator(f"{kind} tbody tr").count() == count
    bars, text = (next(one for one in panels if isinstance(one, kind)) for kind in (Bars, ColoredText))
    assert isinstance(bars, Bars)
    assert isinstance(text, ColoredText)
    cells = page.locator("foveal-bars tbody tr >> nth=1").locator("td").all_inner_texts()
    assert cells == [as_announced(value) for value in bars.array.values[:, 1]]
    cells = page.locator("foveal-colored-text tbody tr >> nth=4").locator("td").all_inner_texts()
    assert cells == [as_announced(float(np.float32(value))) for value in text.array.values[:, 4]]
    table = page.locator("foveal-table tbody tr")
    assert table.count() == 50
    page.locator("foveal-table button", has_text="Next rows").click()
    page.wait_for_timeout(100)
    assert table.first.inner_text().split() == ["50", WORDS[50 % 7]]


@pytest.mark.slow
def test_other_panels_by_keys_alone(page: Any) -> None:
    """From the top of the page, Tab leads to each picture, and the arrow keys to its values."""
    bars, text = (next(one for one in every_panel() if isinstance(one, kind)) for kind in (Bars, ColoredText))
    assert isinstance(bars, Bars)
    assert isinstance(text, ColoredText)
    expected = {
        "foveal-lines": (["ArrowRight"], "held out, step 2: nats 2.5 (cat)"),
        "foveal-histograms": (["End"], "layer 1, 0.75 to 1: 1; note"),
        "foveal-bars": (
            ["ArrowRight", "ArrowDown"],
            f"split 'cat', class 'cat': {as_announced(float(np.float32(bars.array.values[1, 1])))}",
        ),
        "foveal-colored-text": (
            ["ArrowRight", "]"],
            f"token 'cat', unit 'cat': {as_announced(float(np.float32(text.array.values[1, 1])))}",
        ),
        "foveal-images": (
            ["Enter", "ArrowRight"],
            "row 'row', image 1: cat (correct), square 0 down, 1 across: 0.25",
        ),
        "foveal-graph": (["ArrowDown"], "cat, sat: 1 in, 0 out"),
    }
    visited = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        kind = page.evaluate(
            "document.activeElement.getAttribute('role') === 'application'"
            " ? document.activeElement.closest('figure').parentElement.localName : ''"
        )
        if kind in expected and kind not in visited:
            visited.add(kind)
            keys, sentence = expected[kind]
            press(page, *keys)
            assert announced(page, kind) == sentence
    assert visited == {*expected}


@pytest.mark.slow
def test_hostile_strings_are_shown_as_text(browser: Any, tmp_path: Path) -> None:
    """Each stands in a title, an axis, a label, a token, a caption, a fact or a cell; none executes."""
    strings = hostile_strings()
    used = iter(strings)
    payloads: list[Payload] = []
    while len(payloads) < 12:
        payloads.append(payload(lambda name: f"{name}{next(used, '')}"))
    rows = tuple((text, str(place)) for place, text in enumerate(strings))
    labels = Axis("query", tuple(strings))
    square = Heatmap("all", NamedArray(np.eye(len(strings)), (labels, labels)), 0.0, 1.0)
    tokens = ColoredText(
        "all", tuple(strings), NamedArray(np.ones((1, len(strings))), (Axis("unit"), Axis("token"))), 0.0, 1.0
    )
    payloads.append(
        Payload("all", "x", "y", (Table("t", ("text", "number"), rows), square, tokens), "c", "exact")
    )
    assert next(used, None) is None, "all strings are used"
    with watched_page(browser) as page:
        page.goto(write(tmp_path / "hostile.html", *payloads))
        page.wait_for_selector("section >> nth=12 >> .caveat")
        page.wait_for_timeout(500)
        assert page.evaluate("window.broken") is None
        assert page.locator("section >> nth=12").locator("iframe, object, embed, base, meta").count() == 0
        shown = page.locator("section >> nth=12").locator("tbody th bdi").all_text_contents()
        whole = [text.replace("\ud800", "\ufffd") for text in strings[:50]]
        assert [text.replace("\ud800", "\ufffd") for text in shown] == whole
        page.locator("section >> nth=12").locator(".map").focus()
        press(page, "ArrowDown", "ArrowRight")
        assert "</script>" in announced(page, "section >> nth=12 >> foveal-heatmap")


@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 550])
def test_narrow_pages_do_not_scroll_sideways(browser: Any, report: str, width: int) -> None:
    """550 px is a page of 1,100 px at 200 %."""
    with watched_page(browser, viewport={"width": width, "height": 700}) as page:
        page.goto(report)
        page.wait_for_selector(".caveat")
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_violation_of_accessibility(browser: Any, report: str, scheme: str) -> None:
    with watched_page(browser, color_scheme=scheme, reduced_motion="reduce") as page:
        page.goto(report)
        page.wait_for_selector(".caveat")
        page.locator("[title*='as a table']").first.click()
        assert violations(page) == []


@pytest.mark.slow
def test_dark_colors_follow_the_scheme(browser: Any, report: str) -> None:
    with watched_page(browser, color_scheme="dark", viewport={"width": 1100, "height": 900}) as page:
        page.goto(report)
        page.wait_for_selector(".caveat")
        page.wait_for_timeout(300)
        largest, nothing = (sum(pixel(page, ONE_HEAD, 0, column)) for column in (0, 1))
        assert largest > 2 * nothing, "1 is light on a dark page, and 0 is dark"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 28)"


@pytest.mark.slow
def test_a_map_of_4096_tokens(browser: Any, tmp_path: Path) -> None:
    """It opens in under 2 s of the browser, and stays under 200 MB."""
    rows = np.arange(4096, dtype=np.float32)
    values = np.exp(-np.abs(rows[:, None] - rows) / 40) * np.tri(4096, dtype=np.float32)
    values[3000, 17] = 0.75
    axes = Axis("query"), Axis("key")
    large = Payload("map", "x", "y", (Heatmap("large", NamedArray(values, axes), 0.0, 1.0),), "c", "exact")
    address = write(tmp_path / "large.html", large)
    with watched_page(browser, viewport={"width": 1100, "height": 900}) as page:
        page.goto(address)
        page.wait_for_selector("foveal-heatmap canvas[style]")
        opened = page.evaluate("performance.now()")
        page.locator("foveal-heatmap .map").focus()
        press(page, *["PageDown"] * 37)
        press(page, *["ArrowDown"] * 5, "ArrowRight", "ArrowRight")
        assert announced(page, "foveal-heatmap") == ("query 3000 to 3007, key 16 to 23: largest about 0.75")
        press(page, "+")
        press(page, "ArrowRight")
        assert announced(page, "foveal-heatmap") == "query 3000, key 17: about 0.75"
        session = page.context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        session.send("Performance.enable")
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        buffers = page.evaluate("performance.memory.usedJSHeapSize")
    print(f"opened after {opened:.0f} ms; heap {metrics['JSHeapUsedSize'] / 1e6:.0f} MB")
    assert opened < 2000
    assert max(metrics["JSHeapUsedSize"], buffers) < 200e6


def test_types_of_the_modules() -> None:
    compiler = tool_path("typescript", ".bin/tsc")
    result = subprocess.run([compiler, "-p", str(STATIC)], capture_output=True, text=True, timeout=120)
    assert result.stdout == ""
