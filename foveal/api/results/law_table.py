"""The verdicts of a check, which show themselves in a notebook and on a terminal."""

from typing import Any

from foveal.api.results.table import Table
from foveal.inspection.payload import Payload
from foveal.studies.check.check import Check
from foveal.studies.check.report import check_json, check_payload, check_sections, law_json
from foveal.studies.study_result import StudyResult
from foveal.ui.console import Sections


class LawTable(StudyResult, Table):
    """The laws that were checked: a row for each, with its verdict.

    `laws.holds` is True if none is broken, `laws.broken` has those that are, and `laws.verdict` says the
    result in one line.
    """

    def __init__(self, check: Check):
        super().__init__([law_json(result) for result in check.results])
        self.check = check
        """The target with the result of each law."""
        self.verdict = check.verdict
        """The result in one line."""
        self.holds = not check.broken
        """Whether no law is broken."""
        self.broken = [law_json(result) for result in check.broken]
        """The laws that are broken."""
        self.values: dict[str, Any] = check_json(check)
        """All of it for programs, as `foveal check --json` prints it."""

    def sections(self) -> Sections:
        """Return the laws of each part with their verdicts, and the result in one line."""
        return [*check_sections(self.check), f"\n{self.verdict}"]

    def payload(self) -> Payload:
        """Return the report."""
        return check_payload(self.check)
