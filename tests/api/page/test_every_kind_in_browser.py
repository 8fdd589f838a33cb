"""Every view of a run of every kind of task, on the page in a real Chromium, with inputs of each sort."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the extra page is not installed")
pytest.importorskip("uvicorn", reason="the extra page is not installed")

from foveal.api.view import fitting_views
from foveal.inspection.panels import Heatmap
from tests.support.browser import announced, as_announced, press, shown, violations, watched_page
from tests.support.served_page import served_session
from tests.support.untrained_runs import KINDS

pytestmark = pytest.mark.slow
INTERNAL = "an error in Foveal itself"
INPUTS = {
    "row": ("1", "99999"),
    "text": ("the big cat", "a", "the big cat " * 100, "😀 e\u0301 שלום </script>", " "),
}
"""Values of inputs, good and bad."""


def ignore(line: str) -> None:
    pass


def first_cell(session: Any, view: str) -> float | None:
    """Return the first number of a view whose first panel is a map; None for others."""
    chosen = next(one for one in fitting_views(session)[0] if one.name == view)
    (panel, *_) = chosen.compute(session, chosen.Options(), ignore, lambda done, total: None).panels
    return float(np.asarray(panel.array.values)[0, 0]) if isinstance(panel, Heatmap) else None


@pytest.mark.parametrize("kind", KINDS)
def test_every_view_of_a_run(browser: Any, kind: str) -> None:
    """Each opens without an internal error, is accessible, and shows the number that Python computes."""
    session = KINDS[kind]()
    Path("run").mkdir(exist_ok=True)
    with (
        served_session(lambda path: session, Path("run")) as server,
        watched_page(browser, may_be_refused=True, viewport={"width": 1100, "height": 900}) as page,
    ):
        page.goto(server.address)
        page.wait_for_selector("button.view", timeout=120_000)
        shown(page)
        drawn = []
        for name in page.locator("button.view").all_inner_texts():
            error = choose(page, name)
            assert INTERNAL not in error, (name, error)
            assert "--" not in without_commands(error), (name, error)
            if not error:
                drawn.append(name)
                assert " --" not in page.locator(".columns").inner_text(), name
                compare_first_cell(page, session, name)
            assert violations(page) == [], name
        assert drawn
        for option, values in INPUTS.items():
            for view in drawn:
                choose(page, view)
                if page.locator(f"#option-{option}").count():
                    try_values(page, option, values)
                    break


def without_commands(line: str) -> str:
    """Return a line without the commands to type that it has, whose options stay options."""
    return re.sub(r"foveal \w+ .*", "", line)


def choose(page: Any, view: str) -> str:
    """Show a view. Return its error, or an empty text."""
    page.locator(f"button.view[data-view='{view}']").click()
    return shown(page)


def compare_first_cell(page: Any, session: Any, view: str) -> None:
    """Compare the number at the cursor of the first map, if there is one, with that of the view."""
    value = first_cell(session, view)
    if value is not None:
        page.locator(".map").first.focus()
        press(page, "Home")
        said = announced(page, "foveal-heatmap >> nth=0")
        assert as_announced(value) in said or "about" in said, (view, said, value)


def try_values(page: Any, option: str, values: tuple[str, ...]) -> None:
    """Show the view with each value of an option, and at the end without."""
    for value in (*values, ""):
        closed = page.locator("form.options details:not([open]) > summary")
        closed.evaluate_all("all => all.forEach((one) => one.click())")
        page.locator(f"#option-{option}").fill(value)
        page.get_by_role("button", name="Show", exact=True).click()
        error = shown(page)
        assert INTERNAL not in error, (option, value[:20], error)
        assert "--" not in without_commands(error), (option, value[:20], error)
