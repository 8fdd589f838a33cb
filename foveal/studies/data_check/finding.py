"""What a check of data found, with its rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from foveal.data.images.pixel_levels import Pixels

MAX_ROWS = 100
"""Rows that a finding keeps. It counts all."""
Severity = Literal["problem", "note"]
"""A problem makes scores wrong or training worse. A note is for the user to judge."""


@dataclass(frozen=True)
class Finding:
    """What a check found."""

    check: str
    severity: Severity
    message: str
    advice: str
    count: int
    """The number of rows, or of columns."""
    rows: tuple[str, ...] = ()
    """Where the first of them are."""
    pictures: tuple[tuple[str, Pixels], ...] = ()
    """Some of their images, with the names of their files."""

    def to_json(self) -> dict[str, Any]:
        """Return the finding for programs."""
        return {
            "check": self.check,
            "severity": self.severity,
            "message": self.message,
            "advice": self.advice,
            "count": self.count,
            "rows": [*self.rows],
        }


def findings_on(
    check: str, severity: Severity, rows: Sequence[str], message: str, advice: str
) -> list[Finding]:
    """Return the finding on some rows; nothing if there are none. In the message, `{}` is their number."""
    if not rows:
        return []
    text = message.format(f"{len(rows):,} {'row' if len(rows) == 1 else 'rows'}")
    return [Finding(check, severity, text, advice, len(rows), tuple(rows[:MAX_ROWS]))]
