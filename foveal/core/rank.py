"""The place of this process among the ranks of a job, which torchrun writes into the environment."""

import os
from pathlib import Path

LAUNCHER_VARIABLE, STOP_VARIABLE = "FOVEAL_LAUNCHER", "FOVEAL_STOP_FILE"
"""The variables with the process of our launcher, and with the file for what a signal left."""


def world_size() -> int:
    """Return the number of processes that run this command together; 1 if there is no other."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    """Return the number of this process, from 0. Rank 0 prints, and writes files."""
    return int(os.environ.get("RANK", "0")) if world_size() > 1 else 0


def processes_here() -> int:
    """Return the number of processes of the job on this machine; 1 if nothing says so."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if world_size() > 1 else 1


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
