"""What goes wrong on the page of a trained run is one line on it, in a real Chromium; the page goes on."""

import io
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the extra page is not installed")
pytest.importorskip("uvicorn", reason="the extra page is not installed")

from PIL import Image

from foveal.api.page import uploads
from foveal.api.page.listener import Listener
from foveal.api.page.page_state import Start
from foveal.api.page.serve import PageServer
from foveal.api.page.shown_runs import ShownRuns
from tests.support.browser import shown, watched_page

pytestmark = pytest.mark.slow
VIEW = "neighbors"


def serve(run: Path, view: str = VIEW) -> PageServer:
    return PageServer(Listener(), ShownRuns([run]), Start(view=view), "cpu")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[PageServer]:
    with closing(serve(folder / "first")) as one:
        yield one


@pytest.fixture
def page(browser: Any, server: PageServer) -> Iterator[Any]:
    with watched_page(browser, may_be_refused=True) as one:
        one.goto(server.address)
        assert shown(one) == ""
        one.locator("summary", has_text="Choose").click()
        yield one


def send(page: Any, name: str, content: bytes) -> str:
    """Send a file, show the view, and return its error, or that of the form."""
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    before = page.locator("#option-query").input_value()
    page.locator("[aria-label='A file of this computer for query']").set_input_files(file)
    page.wait_for_function(
        "(before) => document.querySelector('#option-query').value !== before "
        "|| document.querySelector('form .error').textContent",
        arg=before,
    )
    if refused := page.locator("form .error").inner_text():
        return str(refused)
    page.get_by_role("button", name="Show", exact=True).click()
    return shown(page)


def png(*size: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.zeros(size, np.uint8)).save(file, "PNG")
    return file.getvalue()


def test_sent_files(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is no image is named as the user knows it; an image of another size is shown."""
    error = send(page, "notes <script>.png", b"This is no image.")
    assert error.startswith("notes")
    assert "/tmp" not in error
    assert "foveal-page" not in error
    assert send(page, "wide.png", png(7, 300)) == ""
    assert send(page, "one.png", png(1, 1, 3)) == ""
    monkeypatch.setattr(uploads, "MAX_BYTES", 10)
    assert "large.png: larger than" in send(page, "large.png", png(9, 9))
    page.locator("#option-query").fill("upload:99")
    page.get_by_role("button", name="Show", exact=True).click()
    assert "choose it again" in shown(page)
    page.locator("#option-query").fill("")
    page.get_by_role("button", name="Show", exact=True).click()
    assert shown(page) == "", "the page goes on"


def test_two_tabs_and_two_servers(browser: Any, server: PageServer, folder: Path) -> None:
    with (
        closing(serve(folder / "first", "confusion")) as other,
        watched_page(browser) as one,
        watched_page(browser) as two,
        watched_page(browser) as three,
    ):
        one.goto(server.address)
        two.goto(server.address)
        three.goto(other.address)
        assert [shown(page) for page in (one, two, three)] == ["", "", ""]
        names = [page.locator("h2").inner_text() for page in (one, two, three)]
        assert names == [VIEW, VIEW, "confusion"]


def test_a_browser_that_goes_away(browser: Any, server: PageServer) -> None:
    """The next page has its view, whatever the first had asked for."""
    with watched_page(browser) as gone:
        gone.goto(server.address)
    with watched_page(browser) as page:
        page.goto(server.address)
        assert shown(page) == ""


def test_a_server_that_has_ended(browser: Any, folder: Path) -> None:
    server = serve(folder / "first")
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.address)
    assert shown(page) == ""
    server.close()
    page.locator("button.view[data-view='confusion']").click()
    assert "The server has ended" in shown(page)
    context.close()


def test_a_run_that_is_still_training(browser: Any, folder: Path, tmp_path: Path) -> None:
    """Before its first weights the page says so; when they are there, it can be shown."""
    run = Path(shutil.copytree(folder / "first", tmp_path / "live"))
    weights = (run / "model.safetensors").read_bytes()
    (run / "model.safetensors").unlink()
    with closing(serve(run)) as server, watched_page(browser, may_be_refused=True) as page:
        page.goto(server.address)
        page.wait_for_selector(".columns .error", timeout=120_000)
        assert "model.safetensors: missing" in page.locator(".columns .error").inner_text()
        (run / "model.safetensors").write_bytes(weights)
        time.sleep(0.1)
        page.reload()
        assert shown(page) == ""


def test_a_run_that_can_not_be_opened(browser: Any, folder: Path, tmp_path: Path) -> None:
    """Another run of the folder is refused with the reason, and the first is shown again."""
    run = Path(shutil.copytree(folder / "first", tmp_path / "own"))
    other = Path(shutil.copytree(folder / "first", tmp_path / "damaged"))
    (other / "config.toml").write_text("")
    with closing(serve(run)) as server, watched_page(browser, may_be_refused=True) as page:
        page.goto(server.address)
        assert shown(page) == ""
        page.get_by_label("Run", exact=True).select_option("damaged")
        page.wait_for_selector(".columns .error", timeout=120_000)
        assert "edited since the run was created" in page.locator(".columns .error").inner_text()
        page.get_by_label("Run", exact=True).select_option("own")
        page.wait_for_selector(".payload", timeout=120_000)
