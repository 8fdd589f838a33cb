"""`foveal inspect RUN --open`: the page of a run in the browser.

The address is there, and the browser starts, before torch is imported: together they take less time.
"""

import threading
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import cyclopts
from cyclopts import App, Parameter

from foveal.api.page.listener import Listener
from foveal.core.errors import UserError
from foveal.core.extras import check_installed
from foveal.core.signals import Interrupted, SignalHandler
from foveal.store.run import open_run
from foveal.tasks.open_logged import open_logged
from foveal.ui.console import STDOUT, log, print_plain

OPEN_FLAG = "--open"
"""Shows the page in place of a view."""
PAGE_HELP = "Show the views of a run, or of two side by side, in the browser."
CHECKED_LATER = ("auto", "cpu")
"""Devices that are there on every machine."""


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

    Raises: UserError: the arguments name no run, a run can't be opened, the extra is missing, or the port is
        in use. Nothing is opened in the browser then.
    """
    request = _parse(tokens)
    if request is None:
        return
    names, options = request
    check_page_installed("the page (--open)")
    runs, view = _runs_and_view(names)
    if options.device not in CHECKED_LATER:
        from foveal.core.runtime import resolve_device

        resolve_device(options.device)
    with SignalHandler():
        listener = Listener(options.port)
        print_plain(listener.address)
        browser = threading.Thread(
            target=_open_browser, args=(listener.address, options.browser), daemon=True
        )
        browser.start()
        try:
            _serve(listener, runs, view, options.device)
        except Interrupted as stop:
            raise Interrupted(stop.number, "") from None


def check_page_installed(purpose: str) -> None:
    """Check that the page can be served. `purpose` is what needs it.

    Raises: MissingPackageError: the extra is not installed.
    """
    for package in ("fastapi", "uvicorn"):
        check_installed(package, purpose)


def _parse(tokens: Sequence[str]) -> tuple[tuple[str, ...], OpenOptions] | None:
    """Return the names and the options; None if the arguments ask for help, which is then printed."""
    usage = f"Usage: foveal inspect RUN [RUN2] [VIEW] {OPEN_FLAG} [OPTIONS]"
    parser = App(name="inspect", help=PAGE_HELP, usage=usage, version_flags=(), console=STDOUT)

    @parser.default
    def parse(*names: str, options: Annotated[OpenOptions, Parameter(name="*")] = OpenOptions()) -> Any:
        return names, options

    try:
        command, bound, _ = parser.parse_args(tokens, exit_on_error=False, print_error=False)
    except cyclopts.CycloptsError as error:
        error.command_chain = ("inspect",)
        raise
    parsed: tuple[tuple[str, ...], OpenOptions] | None = command(*bound.args, **bound.kwargs)
    return parsed


def _runs_and_view(names: Sequence[str]) -> tuple[list[Path], str | None]:
    """Return the run folders, whose plugins are loaded, and the name of the view to show first.

    Raises: UserError: a name is neither a run nor a view, there are more than two runs, or a run can't be
        opened.
    """
    runs = [Path(name) for name in names if Path(name).is_dir()]
    rest = [name for name in names if not Path(name).is_dir()]
    if not 1 <= len(runs) <= 2:
        named = ", ".join(names) or "nothing"
        raise UserError(f"{OPEN_FLAG}: expected a run folder, or two to show side by side, but got {named}")
    if len(rest) > 1:
        raise UserError(f"{rest[1]}: neither a run folder nor the only view; leave it out")
    for run in runs:
        if not open_run(run).has_own_module:
            open_logged(run)
    if not rest:
        return runs, None
    # The views import torch.
    from foveal.api.view import choose_view

    return runs, choose_view(rest[0]).name


def _serve(listener: Listener, runs: list[Path], view: str | None, device: str) -> None:
    """Serve the page until a signal comes."""
    # These take a moment to import, and the browser starts meanwhile.
    from foveal.api.page.page_state import Start
    from foveal.api.page.serve import PageServer
    from foveal.api.page.shown_runs import ShownRuns

    start = Start(view=view, beside=1 if len(runs) > 1 else None)
    server = PageServer(listener, ShownRuns(runs), start, device)
    try:
        server.wait()
    finally:
        server.close()


def _open_browser(address: str, wanted: bool) -> None:
    """Open the page in the user's browser, or say that there is none."""
    try:
        is_opened = wanted and webbrowser.open(address)
    except webbrowser.Error:
        is_opened = False
    if not is_opened:
        log("open this address in a browser on this machine")
    log("the page is served until Ctrl-C")
