"""Labels, marks, tables and titles of a report in a real Chromium: nothing is cut off, or said twice."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from foveal.inspection.files import payload_file
from foveal.inspection.panels import (
    Axis,
    Bars,
    Histogram,
    Histograms,
    Lines,
    NamedArray,
    Panel,
    Series,
    Table,
)
from foveal.inspection.payload import Payload
from tests.support.browser import launched_browser, watched_page

TITLE = "bert-base fits"
PARTS = ("copies of weights", "update of the weights", "working space", "activations", "sum of the gradients")


def bars(count: int) -> Bars:
    axes = Axis("amount", ("GB",)), Axis("part", PARTS[:count])
    return Bars(f"{count} parts", NamedArray(np.arange(1.0, count + 1)[None], axes, "GB"))


def table() -> Table:
    """Return texts, of which only the second and the last column are numbers in each row."""
    rows = (("a", "1,024", "7.7 GB, of 80", "0.5 s"), ("12", "-3e-05", "0.2 GB", ""))
    return Table("", ("name", "count", "amount", "time"), rows)


PANELS: tuple[Panel, ...] = (
    bars(2),
    bars(5),
    Lines(
        "rates",
        (
            Series("end", [1e-5, 1e-4, 1e-2, 1e-1], [0.7, 0.6, 0.0, float("nan")], "dots"),
            Series("given", [1e-5], [0.7], "ring"),
            Series("front", [1e-3], [0.3], "dotted"),
        ),
        "learning rate",
        "loss",
        log_x=True,
        limits=(0.0, 0.7),
    ),
    Histograms(
        "lengths",
        np.array([1.0, 10.0, 3200.0]),
        (Histogram("source", (9, 1)),),
        0,
        "length in words",
        "rows",
        True,
    ),
    table(),
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = tmp_path_factory.mktemp("readable") / "x.html"
    path.write_bytes(payload_file(Payload("plan", "run", TITLE, PANELS, "a caveat", "exact"), ".html"))
    with launched_browser() as browser, watched_page(browser, viewport={"width": 1100, "height": 900}) as one:
        one.goto(path.as_uri())
        one.wait_for_selector("foveal-table tbody tr")
        one.wait_for_selector("foveal-histograms svg rect")
        yield one


@pytest.mark.parametrize("panel", [0, 1])
def test_labels_of_bars_are_whole_and_apart(page: Any, panel: int) -> None:
    script = """(all) => all.map((one) => {
        const { left, right, top, bottom } = one.getBoundingClientRect();
        const frame = one.ownerSVGElement.getBoundingClientRect();
        const words = [...one.querySelectorAll("tspan")].map((line) => line.textContent).join(" ");
        return [words, left, right, left >= frame.left && right <= frame.right && bottom <= frame.bottom + 1];
    })"""
    labels = page.locator(f"foveal-bars >> nth={panel} >> svg text:has(tspan)").evaluate_all(script)
    assert [words for words, *_ in labels] == [*PARTS[: (2, 5)[panel]]]
    assert all(inside for *_, inside in labels)
    ends = [(left, right) for _, left, right, _ in labels]
    assert all(right <= left for (_, right), (left, _) in pairwise(ends))


def test_marks_at_the_limits_are_whole(page: Any) -> None:
    """Of the rates, the last has no loss: the axis ends after the last point that is drawn."""
    script = """(all) => all.map((one) => ["cx", "cy", "r"].map((name) => Number(one.getAttribute(name))))"""
    x, y, radius = np.array(page.locator("foveal-lines .chart circle.dot").evaluate_all(script)).T
    clip = page.locator("foveal-lines clipPath rect").evaluate(
        "(one) => ['x', 'y', 'width', 'height'].map((name) => Number(one.getAttribute(name)))"
    )
    assert len(x) == 5, "three ends, a ring, and the single point of a line"
    assert (x - radius >= clip[0]).all()
    assert (x + radius <= clip[0] + clip[2]).all()
    assert (y - radius >= clip[1]).all()
    assert (y + radius <= clip[1] + clip[3]).all()
    assert x.max() > clip[0] + 0.9 * clip[2]
    assert "0.1" not in page.locator("foveal-lines .chart text.tick").all_text_contents()


def test_only_columns_of_numbers_end_at_the_right(page: Any) -> None:
    script = "rows => rows.map(row => [...row.cells].map(cell => getComputedStyle(cell).textAlign))"
    rows = page.locator("foveal-table tr").evaluate_all(script)
    assert rows == [["left", "right", "left", "right"]] * 3


def test_a_histogram_alone_has_counts_and_units(page: Any) -> None:
    texts = page.locator("foveal-histograms svg text").all_text_contents()
    assert {"rows", "length in words", "0", "5", "10", "100", "1,000"} <= {*texts}


def test_the_title_is_said_once(page: Any) -> None:
    assert page.inner_text("body").count(TITLE) == 1
    assert page.locator("h2.unseen").all_text_contents() == ["plan"]
