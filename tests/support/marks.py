"""The mark of each test, by the place of its file."""

from pathlib import PurePath

MARKS = ("unit", "contract", "command_line")


def mark_of(path: PurePath) -> str:
    """Return the mark of the tests in a file, whose path is relative to the folder `tests`."""
    if path.parts[0] == "commands":
        return "command_line"
    if path.parts[0] == "contract" or path.stem.startswith("test_laws"):
        return "contract"
    return "unit"
