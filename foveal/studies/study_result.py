"""Results of studies, which show themselves on a terminal and in a notebook."""

import base64
import html
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from foveal.inspection.files import payload_file
from foveal.inspection.panels import Table
from foveal.inspection.payload import Payload
from foveal.studies.report_files import write_report
from foveal.ui.console import Sections, sections_text


class StudyResult(ABC):
    """A result that prints as its command does, and shows its tables and pictures in a notebook."""

    def sections(self) -> Sections:
        """Return what the command prints: the tables of the report."""
        payload = self.payload()
        return [f"{payload.title}\n", *payload.sections()]

    @abstractmethod
    def payload(self) -> Payload:
        """Return the tables and pictures of the report."""

    def save(self, path: str | Path) -> Path:
        """Write the report to a `.html`, `.json`, `.png`, `.svg` or `.pdf`, or as `report.html`,
        `report.json` and `report.png` into a folder. Return the path.

        Raises: UserError: the name has another ending, or a picture would be too large.
        Raises: RunFailed: a file can't be written.
        """
        path = Path(path)
        write_report(self.payload(), path)
        return path

    def __repr__(self) -> str:
        return sections_text(self.sections())

    def _repr_html_(self) -> str:
        return "".join(_elements(self.payload()))


def _elements(payload: Payload) -> Iterator[str]:
    tables = [panel for panel in payload.panels if isinstance(panel, Table)]
    yield f"<p><b>{html.escape(payload.title)}</b></p>"
    yield _table(Table("", ("", ""), payload.facts))
    yield from map(_table, tables)
    if len(tables) < len(payload.panels):
        picture = base64.b64encode(payload_file(payload, ".png")).decode("ascii")
        yield f'<img alt="{html.escape(payload.title)}" src="data:image/png;base64,{picture}">'
    yield f"<p>{html.escape(payload.caveat)}</p>"


def _table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table.columns)
    rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in table.rows)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    caption = f"<caption>{html.escape(table.title)}</caption>" if table.title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
