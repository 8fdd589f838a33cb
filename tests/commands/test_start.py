"""What a user waits for at the start."""

import subprocess
import sys
from pathlib import Path

from tests.support.command_line import TINY_MODEL, succeed
from tests.support.small_texts import sentences

STEP = """
import sys
from foveal.cli import main
from foveal.training.trainer import Trainer

train = Trainer._train
def first_step(self):
    train(self)
    print(sorted({"torch._dynamo", "sympy", "matplotlib", "scipy", "numba"} & sys.modules.keys()))
    raise SystemExit(0)
Trainer._train = first_step
main()
"""


def test_no_large_library_is_imported_before_the_first_step() -> None:
    """torch's compiler takes as long as torch itself, and matplotlib draws curves only at the end."""
    Path("text.txt").write_text("\n".join(sentences()))
    succeed("train", "text.txt", *TINY_MODEL, "--budget", "1steps", "--run", "first")  # compiles the kernels
    arguments = ["train", "text.txt", *TINY_MODEL, "--budget", "2steps", "--run", "second"]
    command = [sys.executable, "-c", STEP, *arguments]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n", told
