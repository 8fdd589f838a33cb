"""The package trains without the modules, functions and flags that only POSIX has."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from foveal.core.errors import UserError
from foveal.store.regular_files import open_regular

PROGRAM = """
import importlib.abc
import os
import signal
import sys

MODULES = {"fcntl", "resource", "termios", "tty", "pty", "pwd", "grp", "syslog"}

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import numpy, torch  # these know what system they are on
for name in ("fork", "register_at_fork", "sysconf", "getuid", "geteuid", "statvfs", "fchmod", "mkfifo"):
    delattr(os, name)
for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY"):
    delattr(os, name)
for name in ("SIGHUP", "SIGKILL", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCHLD"):
    delattr(signal, name)

sys.argv = ["foveal", "train", "notes.txt", "--run", "run", "--budget", "2steps", "--model", "lstm",
            "model.width=8", "data.context_length=8", "data.batch_tokens=64"]
from foveal.cli import main
main()
assert not MODULES & sys.modules.keys(), MODULES & sys.modules.keys()
"""


def test_it_trains_without_posix(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("the cat sat on the mat. " * 200, encoding="utf-8")
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"model.safetensors", "curves.png", "checkpoints"} <= files


def test_a_link_is_refused_without_a_flag_for_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for _ in range(2):  # with the flag, and without
        with pytest.raises(UserError, match="link: a link, but a run has only files of its own"):
            open_regular(tmp_path / "link")
        monkeypatch.delattr(os, "O_NOFOLLOW", raising=False)
