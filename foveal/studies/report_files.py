"""The report of a study as files: a page, numbers for programs, and a picture."""

from pathlib import Path

from foveal.inspection.files import check_payload_path, write_payload
from foveal.inspection.payload import Payload
from foveal.store.output_file import check_output_file

REPORTS = ("report.html", "report.json", "report.png")


def check_report_path(out: Path | None) -> None:
    """Check the file, or the folder, for a report before the report is made.

    Raises: UserError: the ending names no format, or the file or the folder can't be written.
    """
    if out is None or not _is_folder(out):
        check_payload_path(out)
    elif out.is_dir():
        check_output_file(out / REPORTS[0])
    else:
        check_output_file(out)


def write_report(payload: Payload, out: Path) -> None:
    """Write a report to a file in the format of its ending, or as all of `REPORTS` into a folder.

    Raises: UserError: the ending names no format, there is no such folder, or a picture would be too large.
    Raises: RunFailed: a file can't be written.
    """
    check_report_path(out)
    if not _is_folder(out):
        write_payload(payload, out)
        return
    out.mkdir(exist_ok=True)
    for name in REPORTS:
        write_payload(payload, out / name)


def _is_folder(out: Path) -> bool:
    """Return whether a path is that of a folder, which may not exist yet: its name has no ending."""
    return out.is_dir() or not (out.suffix or out.exists())
