"""What a user waits for at the start."""

import subprocess
import sys
from pathlib import Path

import pytest

from foveal.cli import COMMANDS
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


FIRST_LINE = """
import sys

class Stop(BaseException): pass

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("foveal.commands."):
            assert "torch" not in sys.modules
            raise Stop

from foveal.cli import main
sys.meta_path.insert(0, Finder())
try:
    main()
except Stop:
    pass
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_the_first_line_comes_before_the_command_is_imported(command: str) -> None:
    """Importing a command takes seconds, in which nothing else would be on the screen."""
    program = [sys.executable, "-c", FIRST_LINE, command, "x"]
    told = subprocess.run(program, capture_output=True, text=True, check=True)
    assert (told.stdout, told.stderr) == ("", f"foveal {command} ...\n")
    asked = subprocess.run([*program, "--help"], capture_output=True, text=True, check=True)
    assert asked.stderr == ""


INTERRUPTED = """
import sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "cyclopts":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Finder())
import runpy
runpy.run_module("foveal", run_name="__main__")
"""


def test_an_interrupt_of_the_first_imports_ends_quietly() -> None:
    told = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False)
    assert told.returncode == 130
    assert told.stderr == ""
