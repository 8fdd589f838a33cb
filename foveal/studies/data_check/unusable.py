"""Rows that a training skips, and why."""

from collections import defaultdict
from collections.abc import Iterator

from foveal.studies.data_check.checked_data import CheckedData
from foveal.studies.data_check.finding import Finding, findings_on


def check_unusable(data: CheckedData) -> Iterator[Finding]:
    """Yield the rows that can't be used, by their reasons."""
    places = defaultdict[str, list[str]](list)
    for row in data.skipped:
        places[row.reason].append(row.location)
    for reason, rows in sorted(places.items(), key=lambda pair: -len(pair[1])):
        escaped = reason.replace("{", "{{").replace("}", "}}")
        yield from findings_on(
            "rows that can't be used", "problem", rows, f"{{}}: {escaped}", "mend them, or leave them out"
        )
