"""The process that starts the ranks of `foveal.Trainer(ranks=N)`, and ends them together."""

import os
import signal
from pathlib import Path
from threading import Thread

from foveal.distributed.launch import Launcher
from foveal.ui.console import warn

MODULE = __name__.rpartition(".")[0]
"""What `python -m` runs: `__main__.py` beside this file."""
RUN_AGAIN = "run the script again, to go on"


def run_again(run: str) -> str:
    """Return how to go on with a run."""
    return f"run the script again, with run={run!r}, to go on"


def launch(file: str, ranks: int) -> None:
    """Start the ranks that train by the arguments in a file. They end when the script ends that started this
    process.

    Raises: RunFailed: a rank was killed.
    Raises: SystemExit: a rank failed, and has said why.
    Raises: Interrupted: a signal came.
    """
    Thread(target=_end_with_the_script, daemon=True).start()
    launcher = Launcher(ranks, 0, lambda run: [], warn, run_again, f"; {RUN_AGAIN}", MODULE)
    try:
        launcher.run([file, str(ranks)])
    finally:
        Path(file).unlink(missing_ok=True)  # a script that was killed leaves it


def _end_with_the_script() -> None:
    """Wait for the end of the standard input, which the script holds open. Then stop as after SIGTERM."""
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)
