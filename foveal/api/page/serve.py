"""The server of the page: on this machine alone, until Ctrl-C."""

import logging
import threading

import uvicorn

from foveal.api.page.app import page_app
from foveal.api.page.listener import Listener
from foveal.api.page.page_state import PageState, Start
from foveal.api.page.security import OnlyOwnPages
from foveal.api.page.shown_runs import ShownRuns
from foveal.core.errors import RunFailed

POLL = 0.2
"""Seconds between looks whether the server still runs."""


class PageServer:
    """A running server in a thread of its own."""

    def __init__(self, listener: Listener, runs: ShownRuns, start: Start, device: str = "auto"):
        self.address = listener.address
        self.state = PageState(runs, start, device)
        app = OnlyOwnPages(page_app(self.state), listener.port, listener.token)
        config = uvicorn.Config(
            app,
            log_config=None,
            lifespan="off",
            server_header=False,
            date_header=False,
            ws="none",
            loop="asyncio",
            http="h11",
        )  # the faster loop and parser take longer to import than they save
        config.load()  # before the thread of the views imports torch
        self.state.compute_first()
        self._server = uvicorn.Server(config)
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
        self._thread = threading.Thread(
            target=self._server.run, args=([listener.socket],), name="page", daemon=True
        )
        self._thread.start()

    def wait(self) -> None:
        """Wait until the server ends, or a signal comes.

        Raises: RunFailed: the server ended by itself.
        """
        while self._thread.is_alive():
            self._thread.join(POLL)
        raise RunFailed("the server of the page ended")

    def close(self) -> None:
        """End the server at once. Files that the page has sent are deleted."""
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(1.0)
        self.state.uploads.clean_up()
