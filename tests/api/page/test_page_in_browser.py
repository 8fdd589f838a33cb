"""The page of a trained run in a real Chromium, served by the server itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the extra page is not installed")
pytest.importorskip("uvicorn", reason="the extra page is not installed")

from foveal.api.page.listener import Listener
from foveal.api.page.page_state import Start
from foveal.api.page.serve import PageServer
from foveal.api.page.shown_runs import ShownRuns
from foveal.api.view import choose_view
from foveal.core.log import Log
from foveal.core.progress import no_progress
from foveal.inspection.panels import Heatmap
from foveal.tasks.session import load
from tests.support.browser import announced, press, violations, watched_page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[PageServer]:
    one = PageServer(Listener(), ShownRuns([folder / "first"]), Start(view="confusion"), "cpu")
    yield one
    one.close()


@pytest.fixture
def page(browser: Any, server: PageServer) -> Iterator[Any]:
    with watched_page(browser, viewport={"width": 1200, "height": 900}) as one:
        one.goto(server.address)
        one.wait_for_selector(".payload, .columns .error", timeout=60_000)
        assert one.locator(".columns .error").all_inner_texts() == []
        yield one


def shares(run: Path, log: Log) -> np.ndarray:
    """Return the map of the view `confusion`, computed without the page."""
    view, session = choose_view("confusion"), load(run)
    (panel, *_) = view.compute(session, view.Options(), log, no_progress).panels
    assert isinstance(panel, Heatmap)
    values: np.ndarray = panel.array.values
    return values


def ignore(line: str) -> None:
    pass


def test_a_view_of_a_run(page: Any, folder: Path) -> None:
    """The value that is read is that of the view. Another run stands beside it, with the same cursor."""
    page.locator("foveal-heatmap .map").focus()
    press(page, "ArrowDown")
    sentence = announced(page, "foveal-heatmap")
    value = float(f"{shares(folder / 'first', ignore)[1, 0]:.3g}")
    assert sentence.startswith(f"correct class 'red', predicted class 'blue': {value:g} share")
    page.get_by_label("Beside it").select_option("second")
    page.wait_for_selector(".columns.two section >> nth=1 >> .payload")
    page.locator(".columns section >> nth=1 >> .map").focus()
    press(page, "ArrowDown")
    value = float(f"{shares(folder / 'second', ignore)[1, 0]:.3g}")
    assert f": {value:g} share" in announced(page, ".columns section >> nth=1 >> foveal-heatmap")
    cursors = page.locator(".cursor").evaluate_all("all => all.map(one => one.style.top)")
    assert len({*cursors}) == 1


def test_views_options_and_a_sent_image(page: Any, folder: Path) -> None:
    page.locator("button.view", has_text="neighbors").click()
    page.wait_for_selector("foveal-images")
    page.locator("summary", has_text="Choose").click()
    page.locator("#option-nearest").fill("2")
    page.locator("[aria-label='A file of this computer for query']").set_input_files(
        str(next(folder.glob("squares/red/*.png")))
    )
    page.wait_for_function("() => document.querySelector('#option-query').value === 'upload:0'")
    page.get_by_role("button", name="Show").click()
    page.wait_for_selector("foveal-images .tile")
    page.wait_for_function("() => document.querySelectorAll('foveal-images img').length === 5")


@pytest.mark.parametrize("width", [320, 1200])
def test_it_is_accessible_and_narrow(browser: Any, server: PageServer, width: int) -> None:
    with watched_page(browser, viewport={"width": width, "height": 800}) as page:
        page.goto(f"{server.address}#view=neighbors")
        page.wait_for_selector(".payload", timeout=60_000)
        page.locator("summary", has_text="Choose").click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert violations(page) == []
