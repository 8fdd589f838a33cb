"""`--watch`: the page of a run that is training, and of the runs in a folder."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from foveal.commands.inspect_page import check_page_installed, open_page
from foveal.core.errors import UserError
from foveal.store.run_list import RunSummary
from foveal.ui.console import log

TRAINING = "training now"
NICENESS = 10
"""The page gives way to the training."""
SECONDS_TO_END = 3.0


def check_watchable() -> None:
    """Check that the page can be served.

    Raises: MissingPackageError: the extra is not installed.
    """
    check_page_installed("--watch")


@contextmanager
def watched(run: Path) -> Iterator[None]:
    """Return a context in which a process of its own serves the page of a run.

    It reads the folder of the run, so the training knows nothing of it. Ctrl-C reaches the training alone.
    """
    command = [
        sys.executable,
        "-m",
        "foveal",
        "inspect",
        str(run),
        "--open",
        "--device",
        "cpu",
        "-q",
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    quiet = subprocess.DEVNULL  # only the address is printed
    page = subprocess.Popen(
        command, stdin=quiet, stdout=sys.stderr, stderr=quiet, env=environment, start_new_session=True
    )
    if hasattr(os, "setpriority"):
        os.setpriority(os.PRIO_PROCESS, page.pid, NICENESS)
    try:
        yield
    finally:
        page.terminate()
        try:
            page.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            page.kill()
        log(f"the page ended with the training; foveal inspect {run} --open shows it again")


def watch_runs(folder: Path, rows: Sequence[RunSummary]) -> None:
    """Serve the page of the runs in a folder: first the one that is training, else the last.

    Raises: UserError: there is no run.
    """
    if not rows:
        raise UserError(f"{folder}: no runs in it; foveal train DATA --watch begins with one")
    check_watchable()
    first = next((row for row in rows if row.state == TRAINING), rows[-1])
    open_page([first.run, "--open"])
