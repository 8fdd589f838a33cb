"""A small language model that is trained for a check, with two checkpoints."""

from pathlib import Path

from tests.support.command_line import TINY_MODEL, succeed

FIRST, LAST = 18, 24
"""The steps of the checkpoints."""
COLORS, ANIMALS = ("red", "blue", "green"), ("cat", "dog")


def train_run(folder: Path, *settings: str) -> Path:
    """Return a run on a text beside it, whose budget was extended once."""
    data, run = folder / "notes.txt", folder / "run"
    lines = (f"{n} is {COLORS[n % 3]}, said the {ANIMALS[n % 2]}.\n" for n in range(400))
    data.write_text("".join(lines))
    budget = ("--budget", f"{FIRST}steps")
    succeed("train", data, "--model", "lstm", "--run", run, *budget, *TINY_MODEL, *settings)
    succeed("resume", run, "--budget", f"{LAST}steps")
    return run
