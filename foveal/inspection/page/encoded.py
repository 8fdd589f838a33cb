"""A payload as bytes. The server knows it without the imports of what makes one."""

from collections.abc import Callable
from dataclasses import dataclass

Blob = Callable[[], bytes]
"""Makes the bytes that are sent when the page asks for them."""


@dataclass(frozen=True)
class EncodedPayload:
    """A payload for the browser."""

    header: bytes
    body: bytes
    blobs: list[Blob]
    """What the page asks for later."""

    @property
    def content(self) -> bytes:
        """The header and the body."""
        return len(self.header).to_bytes(8, "little") + self.header + self.body
