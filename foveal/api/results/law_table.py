"""The verdicts of a check, which show themselves in a notebook and on a terminal."""

import html
from typing import Any

from foveal.api.results.table import Table
from foveal.studies.check.check import Check
from foveal.studies.check.report import check_json, law_json


class LawTable(Table):
    """The laws that were checked: a row for each, with its verdict.

    `laws.holds` is True if none is broken, `laws.broken` has those that are, and `laws.verdict` says the
    result in one line.
    """

    def __init__(self, check: Check):
        super().__init__([law_json(result) for result in check.results])
        self.verdict = check.verdict
        """The result in one line."""
        self.holds = not check.broken
        """Whether no law is broken."""
        self.broken = [law_json(result) for result in check.broken]
        """The laws that are broken."""
        self.values: dict[str, Any] = check_json(check)
        """All of it for programs, as `foveal check --json` prints it."""

    def __repr__(self) -> str:
        return f"{super().__repr__()}\n{self.verdict}"

    def _repr_html_(self) -> str:
        return f"{super()._repr_html_()}<p>{html.escape(self.verdict)}</p>"

    def _shown_rows(self) -> list[dict[str, Any]]:
        return [{name: row[name] for name in self.columns} for row in self]
