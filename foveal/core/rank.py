"""The place of this process among the ranks of a job, which torchrun writes into the environment."""

import os
from pathlib import Path

from foveal.core.errors import UserError

LAUNCHER_VARIABLE, STOP_VARIABLE = "FOVEAL_LAUNCHER", "FOVEAL_STOP_FILE"
"""The variables with the process of our launcher, and with the file for what a signal left."""


def number_in_variable(name: str, least: int, most: int | None = None) -> int:
    """Return the number in a variable of the environment; 1 if the variable is unset or empty.

    Raises: UserError: the variable holds no number from `least` to `most`.
    """
    value = os.environ.get(name) or "1"
    if not value.isdecimal() or int(value) < least or (most is not None and int(value) > most):
        to = "on" if most is None else f"to {most}"
        raise UserError(f"{name}={value}: expected a number from {least} {to}")
    return int(value)


def world_size() -> int:
    """Return the number of processes that run this command together; 1 if there is no other.

    Raises: UserError: WORLD_SIZE is no number from 1 on.
    """
    return number_in_variable("WORLD_SIZE", 1)


def rank() -> int:
    """Return the number of this process, from 0. Rank 0 prints, and writes files.

    A variable that is no number counts as 0 here: lines of errors name the rank, too.
    """
    size, value = os.environ.get("WORLD_SIZE", ""), os.environ.get("RANK", "")
    is_alone = not size or (size.isdecimal() and int(size) == 1)
    return int(value) if value.isdecimal() and not is_alone else 0


def processes_here() -> int:
    """Return the number of processes of the job on this machine; 1 if nothing says so.

    Raises: UserError: LOCAL_WORLD_SIZE is no number from 1 on.
    """
    return number_in_variable("LOCAL_WORLD_SIZE", 1) if world_size() > 1 else 1


def has_launcher() -> bool:
    """Return whether a launcher of ours runs this rank, and has not gone away."""
    return os.environ.get(LAUNCHER_VARIABLE) == str(os.getppid())


def leave_to_launcher(left: str) -> bool:
    """Tell our launcher what a signal left, such as "; nothing was saved". Return whether it says so.

    It does not if another rank was killed, which it names. This rank can't know that: it gets a signal then,
    too.
    """
    if not has_launcher():
        return False
    Path(os.environ[STOP_VARIABLE]).write_text(left)
    return True
