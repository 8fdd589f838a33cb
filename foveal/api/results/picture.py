"""Pictures of results, which show themselves in a notebook."""

from pathlib import Path
from typing import Any

from foveal.store.durable import atomic_write
from foveal.ui.console import check_png_path


class Picture:
    """A picture with the numbers that it shows."""

    def __init__(self, png: bytes, values: dict[str, Any]):
        self.png = png
        """The content of a PNG file."""
        self._values = values

    def save(self, path: str | Path) -> Path:
        """Write the picture to a `.png`, whole or not at all. Return the path.

        Raises: UserError: the name does not end in .png.
        Raises: RunFailed: the file can't be written.
        """
        path = Path(path)
        check_png_path(path)
        atomic_write(path, self.png)
        return path

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers that the picture shows."""
        return self._values

    def _repr_png_(self) -> bytes:
        return self.png

    def __repr__(self) -> str:
        return f"Picture({len(self.png):,} bytes of PNG; .save('x.png'), .to_dict())"
