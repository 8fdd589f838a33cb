"""Tables of results, which show themselves in a notebook and on a terminal."""

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from foveal.core.errors import UserError
from foveal.core.extras import require
from foveal.core.finite_json import finite_json
from foveal.metrics.report import format_table
from foveal.ui.console import truncate

SHOWN_ROWS, SHOWN_LETTERS = 20, 60
"""Rows that a table shows, and letters of a cell."""


class Table(Sequence[dict[str, Any]]):
    """Rows with named columns, each a dict.

    `table[0]["answer"]` is a cell, `table.column("answer")` a column. A notebook shows the first rows.
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]]):
        self.columns = [*dict.fromkeys(name for row in rows for name in row)]
        """The names of the columns, in order."""
        self._rows = [{name: row.get(name) for name in self.columns} for row in rows]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        """Return the row at an index, or a table of the rows of a slice."""
        return Table(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)

    def column(self, name: str) -> list[Any]:
        """Return the cells of a column.

        Raises: UserError: there is no such column.
        """
        if name not in self.columns:
            raise UserError(f"no column {name}; there are {', '.join(self.columns)}")
        return [row[name] for row in self._rows]

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns by name."""
        return {name: self.column(name) for name in self.columns}

    def to_pandas(self) -> Any:
        """Return the table as a `pandas.DataFrame`.

        Raises: UserError: pandas is not installed.
        """
        require("pandas", "to_pandas")
        import pandas

        return pandas.DataFrame(self._rows, columns=self.columns)

    def __repr__(self) -> str:
        lines = [self.columns, *([_shown(row[name]) for name in self.columns] for row in self._shown_rows())]
        return f"{format_table(lines)}{self._rest()}" if self.columns else "no rows"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_shown(row[name]))}</td>" for name in self.columns) + "</tr>"
            for row in self._shown_rows()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{self._rest()}"

    def _shown_rows(self) -> list[dict[str, Any]]:
        return self._rows[:SHOWN_ROWS]

    def _rest(self) -> str:
        more = len(self) - SHOWN_ROWS
        return f"\n... and {more:,} more rows" if more > 0 else ""


def _shown(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.6g}"
    if isinstance(cell, bytes):
        return f"{len(cell):,} bytes"
    text = cell if isinstance(cell, str) else json.dumps(finite_json(cell), ensure_ascii=False, default=str)
    return truncate(" ".join(text.split()), SHOWN_LETTERS)
