"""The first view of the page: the curves are there before torch is imported."""

import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra page is not installed")
pytest.importorskip("uvicorn", reason="the extra page is not installed")

from foveal.api.page.computations import Computation
from foveal.api.page.first_view import encoded_curves
from foveal.api.page.listener import Listener
from foveal.api.page.page_state import ComputeRequest, PageState, Start
from foveal.api.page.serve import PageServer
from foveal.api.page.shown_runs import ShownRuns
from foveal.api.page.view_requests import ViewRequests
from tests.support.browser import shown, watched_page


def test_curves_need_no_torch(folder: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom foveal.api.page.first_view import encoded_curves\n"
        "assert encoded_curves(Path(sys.argv[1])).content\nsys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(folder / "first")]).returncode == 0


@pytest.mark.parametrize("name", ["first", "second"])
def test_they_are_those_of_the_view(folder: Path, name: str) -> None:
    wanted = ViewRequests("cpu").compute(folder / name, "curves", {}, False, Computation(lambda _: None))  # type: ignore[arg-type,return-value]
    assert encoded_curves(folder / name).content == wanted.content


def test_they_do_not_wait_for_the_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither those who ask before they are computed, nor those who ask later."""
    opened = threading.Event()
    monkeypatch.setattr(ViewRequests, "session", lambda *_: opened.wait(60))
    state = PageState(ShownRuns([folder / "first"]), Start(), "cpu")
    wanted = ComputeRequest(run=0, view="curves")
    first = state.compute_first()
    asked = [state._submit(wanted) for _ in range(2)]
    assert asked[0] is first
    assert [one.result.result(30) for one in asked] == [1, 2]
    opened.set()


@pytest.mark.parametrize("start", [Start(view="confusion"), Start(beside=1)])
def test_another_first_view_is_not_early(folder: Path, start: Start) -> None:
    state = PageState(ShownRuns([folder / "first", folder / "second"]), start, "cpu")
    assert state.compute_first().result.result(60) == 1
    assert state.early_view is None


def test_they_are_shown_before_the_list_of_views(folder: Path, browser: Any) -> None:
    """They are computed once, and stay when the list comes."""
    server = PageServer(Listener(), ShownRuns([folder / "first"]), Start(), "cpu")
    held: list[Any] = []
    computed: list[str] = []
    with closing(server), watched_page(browser) as page:
        page.route("**/api/runs/0/views", lambda route: held.append(route))
        page.on("request", lambda request: computed.append(request.url) if "compute" in request.url else None)
        page.goto(server.address)
        page.wait_for_selector(".payload svg, .payload canvas", timeout=60_000)
        assert page.locator("h2").first.inner_text() == "curves"
        assert page.locator("button.view").count() == 0
        page.wait_for_function("() => document.querySelector('nav.views').textContent.startsWith('opening')")
        held[0].continue_()
        page.wait_for_selector("button.view[aria-current='true']", timeout=60_000)
        assert page.locator("button.view[aria-current='true']").inner_text() == "curves"
        assert page.locator(".view-summary").inner_text().startswith("Losses, gradients and rates")
        assert page.locator(".payload").count() == 1
        assert len(computed) == 1
        page.locator("button.view[data-view='confusion']").click()
        assert shown(page) == ""
        assert page.locator("h2").first.inner_text() == "confusion"
