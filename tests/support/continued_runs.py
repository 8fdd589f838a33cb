"""Training that begins from an earlier run."""

from tests.support.command_line import succeed


def train_from_run(data: str, *more: object, run: str = "more", steps: int = 2) -> str:
    """Train from the run `run`; return what the command writes to standard error."""
    return succeed("train", data, "--from", "run", "--budget", f"{steps}steps", "--run", run, *more).err
