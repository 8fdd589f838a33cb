"""Payloads as files: pictures, pages, and JSON for programs."""

import json
from pathlib import Path

from foveal.core.errors import UserError
from foveal.inspection.payload import Payload
from foveal.store.durable import atomic_write
from foveal.store.output_file import check_output_file

SUFFIXES = (".png", ".svg", ".pdf", ".html", ".json")


def check_payload_path(out: Path | None) -> None:
    """Check the file for a payload before the payload is computed.

    Raises: UserError: the ending names no format, or the file can't be written.
    """
    if out is None:
        return
    if out.suffix.lower() not in SUFFIXES:
        endings = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        raise UserError(f"{out}: expected a name that ends in {endings}")
    check_output_file(out)


def payload_file(payload: Payload, suffix: str) -> bytes:
    """Return the content of a file with an ending of `SUFFIXES`.

    Raises: UserError: a picture would be too large.
    """
    if suffix == ".json":
        return f"{json.dumps(payload.to_json(), allow_nan=False)}\n".encode("ascii")
    if suffix == ".html":
        from foveal.inspection.page.report import ReportedView, report_page

        return report_page(payload.title, [ReportedView(payload.view, "", payload)], {})
    # Matplotlib takes longer to import than most commands to run.
    from foveal.inspection.figures.compose import draw_payload

    return draw_payload(payload, suffix[1:])


def write_payload(payload: Payload, out: Path) -> None:
    """Write a payload to a file, whole or not at all, in the format of its ending.

    Raises: UserError: the ending names no format, there is no such folder, or a picture would be too large.
    Raises: RunFailed: the file can't be written.
    """
    check_payload_path(out)
    atomic_write(out, payload_file(payload, out.suffix.lower()))


def check_folder(folder: Path) -> None:
    """Make a folder for pictures, if there is none.

    Raises: UserError: the path is a file, or looks like the name of one.
    """
    if folder.suffix.lower() in SUFFIXES or (folder.exists() and not folder.is_dir()):
        raise UserError(f"{folder}: expected a folder, for a picture of each view; or name a view")
    folder.mkdir(parents=True, exist_ok=True)


def write_thumbnail(payload: Payload, out: Path) -> None:
    """Write a small PNG of a payload, whole or not at all.

    Raises: UserError: the picture would be too large.
    Raises: RunFailed: the file can't be written.
    """
    from foveal.inspection.figures.compose import draw_payload

    atomic_write(out, draw_payload(payload, thumbnail=True))
