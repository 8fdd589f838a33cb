"""The address of the page: a port of this machine alone, and a token. Its first modules are quick to import.

A browser that asks before the server runs waits in the queue of the port.
"""

import errno
import secrets
import socket

from foveal.core.errors import UserError

ADDRESS, PORT, PORTS_TRIED = "127.0.0.1", 8237, 50
"""Where the page is served; if no port is named, the first of these that is free."""


class Listener:
    """A port of this machine that listens, and the token with which its addresses begin."""

    def __init__(self, port: int | None = None):
        """Bind a port.

        Raises: UserError: the port is in use, or not allowed.
        """
        self.socket = _bind(port)
        self.port: int = self.socket.getsockname()[1]
        self.token = secrets.token_urlsafe(16)
        self.address = f"http://{ADDRESS}:{self.port}/{self.token}/"


def _bind(port: int | None) -> socket.socket:
    """Return a socket of this machine that listens on a port, or on the first that is free."""
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
