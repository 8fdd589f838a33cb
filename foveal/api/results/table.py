"""Tables of results, which show themselves in a notebook and on a terminal."""

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from foveal.config import suggest
from foveal.core.errors import UserError
from foveal.core.extras import require
from foveal.core.finite_json import finite_json
from foveal.metrics.report import format_table
from foveal.ui.console import truncate

SHOWN_ROWS, SHOWN_LETTERS = 20, 60
"""Rows that a table shows, and letters of a cell."""


class Table(Sequence[dict[str, Any]]):
    """Rows with named columns, each a dict.

    `table[0]["answer"]` is a cell, `table["answer"]` or `table.column("answer")` a column. A notebook shows
    the first rows.
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]]):
        self.columns = [*dict.fromkeys(name for row in rows for name in row)]
        """The names of the columns, in order."""
        self._rows = [{name: row.get(name) for name in self.columns} for row in rows]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        """Return the row at an index, a table of the rows of a slice, or the column of a name.

        Raises: UserError: there is no such column.
        """
        if isinstance(index, str):
            return self.column(index)
        return Table(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)

    def column(self, name: str) -> list[Any]:
        """Return the cells of a column.

        Raises: UserError: there is no such column.
        """
        if name not in self.columns:
            known = suggest(name, self.columns) if self.columns else "; the table has no rows"
            raise UserError(f"no column {name}{known}")
        return [row[name] for row in self._rows]

    def __getattr__(self, name: str) -> Any:
        """Say that columns are no attributes.

        Raises: AttributeError: there is no such attribute.
        """
        columns = self.__dict__.get("columns", ())
        public = [each for each in (*dir(self), *self.__dict__) if not each.startswith("_")]
        hint = f'; a column: table["{name}"]' if name in columns else suggest(name, public)
        raise AttributeError(f"a {type(self).__name__} has no {name}{hint}")

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
        lines = [
            self.columns,
            *([shown_cell(row[name]) for name in self.columns] for row in self._shown_rows()),
        ]
        return f"{format_table(lines)}{self._rest()}" if self.columns else "no rows"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>"
            + "".join(f"<td>{html.escape(shown_cell(row[name]))}</td>" for name in self.columns)
            + "</tr>"
            for row in self._shown_rows()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{self._rest()}"

    def _shown_rows(self) -> list[dict[str, Any]]:
        return self._rows[:SHOWN_ROWS]

    def _rest(self) -> str:
        more = len(self) - SHOWN_ROWS
        return f"\n... and {more:,} more rows" if more > 0 else ""


def shown_cell(cell: Any) -> str:
    """Return a value as a cell of a table that is shown."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.6g}"
    if isinstance(cell, bytes):
        return f"{len(cell):,} bytes"
    text = cell if isinstance(cell, str) else json.dumps(finite_json(cell), ensure_ascii=False, default=str)
    return truncate(" ".join(text.split()), SHOWN_LETTERS)
