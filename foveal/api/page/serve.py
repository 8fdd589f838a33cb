"""The server of the page: on this machine alone, until Ctrl-C."""

import errno
import logging
import secrets
import socket
import threading
import webbrowser
from contextlib import suppress
from typing import Any

import uvicorn

from foveal.api.page.app import PageState, page_app
from foveal.api.page.opened_runs import OpenedRuns
from foveal.api.page.security import OnlyOwnPages
from foveal.core.errors import RunFailed, UserError

ADDRESS, PORT, PORTS_TRIED = "127.0.0.1", 8237, 50
"""Where the page is served; if no port is named, the first of these that is free."""
POLL = 0.2
"""Seconds between looks whether the server still runs."""


def bind(port: int | None) -> socket.socket:
    """Return a socket of this machine that listens on a port, or on the first that is free.

    Raises: UserError: the port is in use, or not allowed.
    """
    for number in [*range(PORT, PORT + PORTS_TRIED), 0] if port is None else [port]:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.bind((ADDRESS, number))
            listener.listen(128)
        except (OSError, OverflowError) as error:
            listener.close()
            if port is not None:
                raise UserError(_port_advice(port, error)) from None
        else:
            return listener
    raise UserError(f"no port of {ADDRESS} is free")


def _port_advice(port: int, error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"--port {port}: in use by another program; leave it out, and a free one is taken"
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM):
        return f"--port {port}: not allowed; take one from 1024 on"
    return f"--port {port}: expected a number from 1024 to 65535"


class PageServer:
    """A running server in a thread of its own."""

    def __init__(self, runs: OpenedRuns, start: dict[str, Any], port: int | None = None):
        listener = bind(port)
        self.port, token = listener.getsockname()[1], secrets.token_urlsafe(16)
        self.address = f"http://{ADDRESS}:{self.port}/{token}/"
        self.state = PageState(runs, start)
        app = OnlyOwnPages(page_app(self.state), self.port, token)
        config = uvicorn.Config(
            app, log_config=None, lifespan="off", server_header=False, date_header=False, ws="none"
        )
        self._server = uvicorn.Server(config)
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
        self._thread = threading.Thread(target=self._server.run, args=([listener],), name="page", daemon=True)
        self._thread.start()
        threading.Thread(target=self._open_first, name="first run", daemon=True).start()

    def _open_first(self) -> None:
        """Open the first run while the browser starts. Its errors are shown when the page asks for it."""
        with suppress(Exception):
            self.state.runs.session(0)

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


def open_browser(address: str) -> bool:
    """Open the page in the user's browser. Return whether there is one."""
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False
