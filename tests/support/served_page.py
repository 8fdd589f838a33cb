"""The page, served by the real server on this machine, of runs or views that a test has in memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from foveal.api.page import view_requests
from foveal.api.page.listener import Listener
from foveal.api.page.page_state import Start
from foveal.api.page.serve import PageServer
from foveal.api.page.shown_runs import ShownRuns
from foveal.inspection.view import View


@contextmanager
def served_session(open_session: Callable[[Path], Any], *runs: Path, view: str = "") -> Iterator[PageServer]:
    """Serve the page of runs that `open_session` opens, with `view` first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_requests.ViewRequests, "session", lambda requests, path: open_session(path))
        server = PageServer(Listener(), ShownRuns([*runs]), Start(view=view or None), "cpu")
        try:
            yield server
        finally:
            server.close()


@contextmanager
def served_view(view: View[Any], run: Path) -> Iterator[PageServer]:
    """Serve the page of a view that needs no run."""

    def compute(view: Any, session: Any, options: Any, control: bool, log: Any, progress: Any) -> Any:
        return view.compute(session, options, log, progress)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_requests, "choose_view", lambda name: view)
        patch.setattr(view_requests, "fitting_views", lambda session: ([view], {}))
        patch.setattr(view_requests, "compute_payload", compute)
        with served_session(lambda path: None, run) as server:
            yield server
