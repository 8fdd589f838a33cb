"""Rows that can't be read, and why."""

import re
from collections import defaultdict
from collections.abc import Iterator

from foveal.data.core.rows import SkippedRow
from foveal.studies.data_check.checked_data import CheckedData
from foveal.studies.data_check.finding import Finding, findings_on

NAMES = re.compile(r"'[^']*'|\"[^\"]*\"|\S*[/\\\\]\S+|\d[\d,.]*")
"""What differs among reasons of a kind: quoted words, paths and numbers."""


def check_unusable(data: CheckedData) -> Iterator[Finding]:
    """Yield the rows that can't be used, by the kind of their reason."""
    kinds = defaultdict[str, list[SkippedRow]](list)
    for row in data.skipped:
        kinds[NAMES.sub("...", row.reason)].append(row)
    for kind, rows in sorted(kinds.items(), key=lambda pair: -len(pair[1])):
        same = len({row.reason for row in rows}) == 1
        reason = (rows[0].reason if same else kind).replace("{", "{{").replace("}", "}}")
        places = [row.location if same else f"{row.location}: {row.reason}" for row in rows]
        advice = "fix them, or leave them out"
        yield from findings_on("rows that can't be used", "problem", places, f"{{}}: {reason}", advice)
