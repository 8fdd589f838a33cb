"""Pictures of views, which show themselves in a notebook."""

from functools import cached_property
from pathlib import Path
from typing import Any

from foveal.inspection.files import payload_file, write_payload
from foveal.inspection.payload import Payload


class Picture:
    """A picture with the numbers that it shows."""

    def __init__(self, payload: Payload):
        self.payload = payload
        """The named numbers, from which every format is made."""

    @cached_property
    def png(self) -> bytes:
        """The content of a PNG file."""
        return payload_file(self.payload, ".png")

    def save(self, path: str | Path) -> Path:
        """Write the picture to a `.png`, `.svg`, `.pdf` or `.html`, or its numbers to a `.json`, whole or not
        at all. Return the path.

        Raises: UserError: the name has another ending.
        Raises: RunFailed: the file can't be written.
        """
        path = Path(path)
        write_payload(self.payload, path)
        return path

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers that the picture shows."""
        return self.payload.to_json()

    def _repr_png_(self) -> bytes:
        return self.png

    def __repr__(self) -> str:
        return f"Picture({self.payload.title!r}; .save('x.png'), .to_dict())"
