"""The report of a study in its folder: a page, numbers for programs, and a picture."""

from pathlib import Path

from foveal.inspection.files import write_payload
from foveal.inspection.payload import Payload

REPORTS = ("report.html", "report.json", "report.png")


def write_reports(payload: Payload, folder: Path) -> None:
    """Write the report of a study into its folder.

    Raises: UserError: a file can't be written.
    """
    for name in REPORTS:
        write_payload(payload, folder / name)
