"""Rows of texts, with the names of their columns."""

from dataclasses import dataclass
from typing import Any

from foveal.core.terminal_text import counted


@dataclass(frozen=True)
class Table:
    """Rows of texts, with the names of their columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"{self.title}: each row has {len(self.columns)} columns")

    def sentence(self) -> str:
        """Return a description, for those who do not see the picture."""
        names = ", ".join(filter(None, self.columns))
        return f"table of {counted(len(self.rows), 'row')}{f': {names}' if names else ''}"

    def to_json(self) -> dict[str, Any]:
        """Return the texts."""
        return {"columns": [*self.columns], "rows": [[*row] for row in self.rows]}
