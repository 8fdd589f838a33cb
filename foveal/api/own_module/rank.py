"""What `foveal.Trainer(ranks=N)` starts: the launcher of the ranks, and each rank."""

import os
import signal
import sysconfig
import traceback
from pathlib import Path
from threading import Thread

import torch

import foveal
from foveal.api.own_module.trainer import RUN_AGAIN, Trainer, run_again
from foveal.core.errors import RunFailed, UserError
from foveal.distributed.launch import Launcher, is_launched
from foveal.ui.console import warn

FOREIGN = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
"""The folders of code that is not the user's."""


def launch_or_train(file: str, ranks: int) -> None:
    """Start the ranks that train with the arguments in a file; or train, if this process is one of them.

    Raises: UserError: the arguments can't be read here, or can't be used.
    Raises: RunFailed: a rank was killed, or the training failed.
    Raises: SystemExit: a rank failed, and has said why.
    Raises: Interrupted: a signal came.
    """
    if is_launched():
        _read_trainer(file).run()
        return
    Thread(target=_end_with_the_script, daemon=True).start()
    module = __name__.rpartition(".")[0]
    Launcher(ranks, 0, lambda run: [], warn, run_again, f"; {RUN_AGAIN}", module).run([file, str(ranks)])


def exit_code_and_message(error: Exception) -> tuple[int, str]:
    """Return the exit code and the message of an error, with the line of the user's code that it went
    through."""
    if isinstance(error, (UserError, RunFailed)):
        return 2 if isinstance(error, UserError) else 1, str(error)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_own(frame.filename)]
    place = f" in {own[-1].name}, {own[-1].filename}:{own[-1].lineno}" if own else ""
    problem = f"{type(error).__name__}: {error}".removesuffix(": ")
    return 1, f"{problem}{place} (without ranks= you see the whole of it)"


def _read_trainer(file: str) -> Trainer:
    """Return the Trainer of this rank. The file was written by the script that started it.

    Raises: UserError: something can't be imported here.
    """
    try:
        # Tensors stay in the file: all ranks have the same pages in memory, until they write to them.
        arguments = torch.load(file, weights_only=False, mmap=True)
    except Exception as error:  # whatever the code of a user raises
        reason = f"{type(error).__name__}: {error}"
        raise UserError(
            f"ranks=: what was given to foveal.Trainer can't be read in another process ({reason}): define "
            "it in the script itself, or in a module that can be imported"
        ) from error
    return Trainer(**arguments)


def _is_own(file: str) -> bool:
    """Return whether a file is the user's."""
    folders = [*FOREIGN, Path(foveal.__file__).parent]
    return not file.startswith("<frozen") and not any(Path(file).is_relative_to(folder) for folder in folders)


def _end_with_the_script() -> None:
    """Stop the ranks, after a checkpoint, when the script that started them has ended."""
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)
