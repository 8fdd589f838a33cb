"""`foveal inspect RUN --report FILE`: the views of a run in one file."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from foveal.api.view import AnyView, compute_views
from foveal.core.errors import UserError
from foveal.inspection.page.report import ReportedView, report_page
from foveal.inspection.run_protocols import InspectedRun
from foveal.store.durable import atomic_write
from foveal.store.output_file import check_output_file
from foveal.ui.console import print_json, print_sections


def check_report_path(out: Path | None) -> None:
    """Check the file of a report before its views are computed.

    Raises: UserError: the name does not end in .html, or the file can't be written.
    """
    if out is None:
        return
    if out.suffix.lower() != ".html":
        raise UserError(f"{out}: expected a name that ends in .html")
    check_output_file(out)


def print_report(
    session: InspectedRun, views: Sequence[AnyView], reasons: Mapping[str, str], out: Path, json: bool
) -> None:
    """Write all views with their default options into one file, and print which are in it.

    Raises: UserError: no view can be computed.
    """
    shown: list[ReportedView] = []
    missing = dict(reasons)
    for view, result in compute_views(views, session):
        if isinstance(result, UserError):
            missing[view.name] = str(result)
        else:
            shown.append(ReportedView(view.name, view.summary, result))
    if not shown:
        reason = next(iter(missing.values()), "no view fits")
        raise UserError(f"{session.run.path}: a report would be empty: {reason}")
    atomic_write(out, report_page(str(session.run.path), shown, missing))
    if json:
        print_json({"report": str(out), "views": [view.name for view in shown], "others": missing})
        return
    names = ", ".join(view.name for view in shown)
    facts = [("report", str(out)), ("size", f"{out.stat().st_size / 1e6:,.1f} MB"), ("views", names)]
    print_sections([facts])
    if missing:
        print_sections(["\nnot in it:\n", [*missing.items()]])
