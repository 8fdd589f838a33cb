"""The run of a command that torchrun starts again.

After a failure, torchrun runs the same command once more, and `foveal train` has to go on with the run that
it has made. Each machine notes the run in the folder that its torchrun has for this job alone. The ranks
share the notes, since a machine may be new to the job.
"""

import os
from pathlib import Path

from foveal.core.errors import UserError
from foveal.distributed.world import World

ATTEMPT_FILE = "TORCHELASTIC_ERROR_FILE"
"""The variable with JOB/attempt_N/LOCAL_RANK/error.json, the path for an error of this process. Each torchrun
makes a folder JOB of its own."""
NOTE = "foveal_run"


def note_for_restart(path: str) -> None:
    """Note the absolute path of this command's run; an empty one if the run is removed."""
    folder = _job_folder()
    if folder is None or os.environ.get("LOCAL_RANK") != "0":
        return
    half_written = folder / f"{NOTE}.part"
    half_written.write_text(path)
    half_written.replace(folder / NOTE)


def run_before_restart(world: World) -> str:
    """Return the run that the ranks trained before torchrun started them again; empty if there is none.

    Raises: UserError: torchrun has started them again, and has no folder with the note.
    """
    folder = _job_folder()
    if folder is None and int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")):
        raise UserError(
            "torchrun has started this command again, and has no folder in which its run is noted: leave out "
            f"--log-dir {os.devnull}; go on with torchrun ... -m -- foveal resume RUN"
        )
    note = None if folder is None else folder / NOTE
    own = note.read_text() if note is not None and note.exists() else ""
    return next(filter(None, world.exchange(own)), "")


def _job_folder() -> Path | None:
    """Return the folder of this job on this machine, if torchrun has started this process."""
    file = os.environ.get(ATTEMPT_FILE)
    return Path(file).parents[2] if file else None
