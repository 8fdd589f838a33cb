"""The result of a comparison, which shows itself in a notebook and on a terminal."""

from typing import Any

from foveal.api.results.picture import Picture
from foveal.api.results.table import Table
from foveal.inspection.payload import Payload
from foveal.studies.compare.comparison import Comparison
from foveal.studies.compare.report import comparison_json, comparison_payload
from foveal.studies.study_result import StudyResult


class ComparisonTable(StudyResult, Table):
    """The models of a comparison: a row for each, with its size, its costs and its mean loss.

    `result.verdict` and `result.conclusions` say who is best, `result.differences` has a row for each pair,
    and `result.picture` has the curves. `str(result)` has what `foveal compare` prints.
    """

    def __init__(self, comparison: Comparison):
        self.values: dict[str, Any] = comparison_json(comparison)
        """All of it for programs, as `foveal compare --json` prints it."""
        rows = self.values["models"]
        super().__init__([{name: row[name] for name in row if name != "runs"} for row in rows])
        self.comparison = comparison
        """The models with their runs."""
        self.verdict: str = self.values["verdict"]
        """The result in one line."""
        self.conclusions: str = self.values["conclusions"]
        """The result in a paragraph."""
        self.differences = Table(self.values["differences"])
        """The paired difference of each pair of models."""

    @property
    def picture(self) -> Picture:
        """The pictures of the report."""
        return Picture(self.payload())

    def payload(self) -> Payload:
        """Return the report."""
        return comparison_payload(self.comparison)
