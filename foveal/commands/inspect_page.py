"""`foveal inspect RUN --open` and `--report FILE`: the views of a run in the browser."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import cyclopts
from cyclopts import App, Parameter

from foveal.api.view import AnyView, choose_view, compute_view
from foveal.core.errors import UserError
from foveal.core.runtime import resolve_device
from foveal.core.signals import Interrupted, SignalHandler
from foveal.inspection.page.report import ReportedView, report_page
from foveal.store.durable import atomic_write
from foveal.tasks.session import Session
from foveal.ui.console import log, print_json, print_plain, print_sections

OPEN_FLAG = "--open"
"""Shows the page in place of a view."""


@dataclass(frozen=True)
class OpenOptions:
    """The options of the page."""

    open: Annotated[bool, Parameter(negative="")] = False
    """Show the views in the browser, and serve them on this machine until Ctrl-C."""
    port: int | None = None
    """The port of the page; if not given, the first from 8237 on that is free."""
    browser: bool = True
    """Open the browser; else only print the address."""
    device: str = "auto"
    """cpu, cuda, mps, or auto."""


def open_page(tokens: Sequence[str]) -> None:
    """Serve the page of a run, or of two runs side by side, until a signal comes.

    Raises: UserError: the arguments name no run, or the port is in use.
    """
    parser = App(name="inspect", version_flags=(), help_flags=())

    @parser.default
    def parse(*names: str, options: Annotated[OpenOptions, Parameter(name="*")] = OpenOptions()) -> Any:
        return names, options

    try:
        command, bound, _ = parser.parse_args(tokens, exit_on_error=False, print_error=False)
    except cyclopts.CycloptsError as error:
        error.command_chain = ("inspect",)
        raise
    names, options = command(*bound.args, **bound.kwargs)
    runs, view = _runs_and_view(names)
    device = resolve_device(options.device)
    # The extra is asked for where it is needed.
    from foveal.api.page.opened_runs import OpenedRuns
    from foveal.api.page.serve import PageServer, open_browser

    start = {"start": {"view": view, "run": 0, "beside": 1 if len(runs) > 1 else None}}
    with SignalHandler():
        server = PageServer(OpenedRuns(runs, device), start, options.port)
        try:
            print_plain(server.address)
            if not (options.browser and open_browser(server.address)):
                log("open this address in a browser on this machine")
            log("the page is served until Ctrl-C")
            server.wait()
        except Interrupted as stop:
            raise Interrupted(stop.number, "") from None
        finally:
            server.close()


def _runs_and_view(names: Sequence[str]) -> tuple[list[Path], str | None]:
    """Return the run folders, and the name of the view to show first.

    Raises: UserError: a name is neither a run nor a view, or there are more than two runs.
    """
    runs, rest = [Path(name) for name in names if Path(name).is_dir()], []
    for name in names:
        if not Path(name).is_dir():
            rest.append(name)
    if not runs or not 1 <= len(runs) <= 2:
        named = ", ".join(names) or "nothing"
        raise UserError(f"{OPEN_FLAG}: expected a run folder, or two to show side by side, but got {named}")
    if len(rest) > 1:
        raise UserError(f"{rest[1]}: neither a run folder nor the only view; leave it out")
    return runs, choose_view(rest[0]).name if rest else None


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
    missing = dict(reasons)
    for view in views:
        log(f"{view.name}: {view.summary}")
        try:
            payload = compute_view(view, session, view.Options())
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
