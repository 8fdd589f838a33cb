"""Who may talk to the server: pages that it served itself, on this machine, with its token."""

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
"""The headers of every answer."""
NAMES = ("127.0.0.1", "localhost")
"""The names of this machine. With others, a page of a stranger could have its own name lead here."""


class OnlyOwnPages:
    """Refuses requests that name another host, come from another page, or lack the token.

    The token is the first part of the path. The rest goes to the application.
    """

    def __init__(self, app: App, port: int, token: str):
        self._app, self._token = app, token
        self._hosts = {f"{name}:{port}" for name in NAMES}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                guards = [(name.encode("ascii"), value.encode("ascii")) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *guards]
            await send(message)

        if scope["type"] != "http" or (status := self._status(scope["path"], headers)):
            await _refuse(send_guarded, 403 if scope["type"] != "http" else status)
            return
        path = scope["path"].removeprefix(f"/{self._token}")
        await self._app({**scope, "path": path, "raw_path": path.encode("utf-8")}, receive, send_guarded)

    def _status(self, path: str, headers: dict[str, str]) -> int:
        """Return the status of a refusal, or 0."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if host not in self._hosts or (origin is not None and origin != f"http://{host}"):
            return 403
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403
        first = path.split("/")[1] if "/" in path else ""
        return 0 if secrets.compare_digest(first.encode("utf-8"), self._token.encode("ascii")) else 404


async def _refuse(send: Send, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})
