"""Tables without faults, and what `foveal data check` finds in data."""

import json
import random
from pathlib import Path
from typing import Any

from tests.support.command_line import succeed

WORDS = tuple(f"{first}{last}" for first in "bdfgklmnprst" for last in ("ala", "emi", "oru", "uke", "ina"))
Table = list[tuple[str, str]]


def clean_rows(count: int = 60, seed: int = 0) -> Table:
    draw = random.Random(seed)
    return [(" ".join(draw.choices(WORDS, k=12)), ("up", "down")[number % 2]) for number in range(count)]


def write(path: str, rows: Table, header: str = "text,label") -> None:
    Path(path).write_text("".join(f"{line}\n" for line in [header, *map(",".join, rows)]), "utf-8")


def findings(*arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(succeed("data", "check", *arguments, "--json").out)["findings"]
    return found


def only(check: str, *arguments: str) -> dict[str, Any]:
    """Return the single finding, which is of this check."""
    (finding,) = findings(*arguments)
    assert finding["check"] == check
    return finding
