"""The address of the page has the choice of run, view and options; what is shown outlives the server."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra page is not installed")
pytest.importorskip("uvicorn", reason="the extra page is not installed")

from foveal.api.page.listener import Listener
from foveal.api.page.page_state import Start
from foveal.api.page.serve import PageServer
from foveal.api.page.shown_runs import ShownRuns
from tests.support.browser import shown, watched_page

CURRENT = "button.view[aria-current='true']"


@pytest.fixture
def server(folder: Path) -> Iterator[PageServer]:
    with closing(
        PageServer(Listener(), ShownRuns([folder / "first", folder / "second"]), Start(), "cpu")
    ) as one:
        yield one


def opened(page: Any, address: str) -> None:
    page.goto(address)
    page.wait_for_selector(CURRENT, timeout=60_000)
    assert shown(page) == ""


def choose(page: Any, view: str) -> None:
    page.locator(f"button.view[data-view='{view}']").click()
    assert shown(page) == ""


def wait_for_view(page: Any, view: str) -> None:
    page.wait_for_selector(f"{CURRENT}[data-view='{view}']", timeout=30_000)
    shown(page)


def test_the_buttons_of_the_browser_go_from_view_to_view(server: PageServer, browser: Any) -> None:
    with watched_page(browser) as page:
        opened(page, server.address)
        choose(page, "confusion")
        choose(page, "model-map")
        page.go_back()
        wait_for_view(page, "confusion")
        page.go_back()
        wait_for_view(page, "curves")
        page.go_forward()
        wait_for_view(page, "confusion")
        assert page.locator("h2").first.inner_text() == "confusion"


def test_options_outlive_a_reload_and_inputs_not_their_run(server: PageServer, browser: Any) -> None:
    with watched_page(browser) as page:
        opened(page, server.address)
        choose(page, "saliency")
        page.locator("form.options summary").click()
        page.locator("#option-row").fill("2")
        page.locator("#option-seed").fill("5")
        page.get_by_role("button", name="Show", exact=True).click()
        assert shown(page) == ""
        before = page.locator(".payload").inner_text()
        page.reload()
        wait_for_view(page, "saliency")
        assert [page.locator(f"#option-{name}").input_value() for name in ("row", "seed")] == ["2", "5"]
        assert page.locator(".payload").inner_text() == before
        page.locator("#run").select_option("1")
        page.wait_for_function("() => document.title.startsWith('second')")
        wait_for_view(page, "saliency")
        assert page.locator("#option-row").input_value() == ""


def test_a_picture_outlives_the_server(folder: Path, browser: Any) -> None:
    server = PageServer(Listener(), ShownRuns([folder / "first"]), Start(), "cpu")
    page = browser.new_page()
    with closing(page), closing(server):
        opened(page, server.address)
        server.close()
        page.locator(CURRENT).click()
        page.wait_for_function("() => document.querySelector('.status').textContent.includes('has ended')")
        assert page.locator(".payload svg, .payload canvas").count() > 0
        assert page.locator(".columns .error").count() == 0
