"""`foveal inspect RUN --report FILE`: the views of a run in one file."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from foveal.api.view import AnyView, compute_view
from foveal.core.errors import UserError
from foveal.core.log import each_once
from foveal.inspection.page.report import ReportedView, report_page
from foveal.store.durable import atomic_write
from foveal.tasks.session import Session
from foveal.ui.console import log, print_json, print_sections


def check_report_path(out: Path | None) -> None:
    """Check the file name of a report.

    Raises: UserError: the name does not end in .html.
    """
    if out is not None and out.suffix.lower() != ".html":
        raise UserError(f"{out}: expected a name that ends in .html")


def print_report(
    session: Session, views: Sequence[AnyView], reasons: Mapping[str, str], out: Path, json: bool
) -> None:
    """Write all views with their default options into one file, and print which are in it.

    Raises: UserError: no view can be computed.
    """
    shown: list[ReportedView] = []
    missing, new_lines = dict(reasons), each_once(log)
    for view in views:
        log(f"{view.name}: {view.summary}")
        try:
            payload = compute_view(view, session, view.Options(), log=new_lines)
        except UserError as error:
            missing[view.name] = str(error)
        else:
            shown.append(ReportedView(view.name, view.summary, payload))
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
