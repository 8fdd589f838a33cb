"""What only shows in a process: how fast help comes, a reader that goes away, a full disk."""

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import kill
from tests.support.command_line import run_command, succeed
from tests.support.interrupted_command import TRAIN_COMMAND

HELP = """
import sys
from foveal.cli import main
sys.argv = ["foveal", "--help"]
try:
    main()
finally:
    heavy = {"torch", "numpy", "pydantic", "matplotlib", "pyarrow", "tokenizers"} & set(sys.modules)
    print(sorted(heavy), file=sys.stderr)
"""


def test_help_is_fast_and_light() -> None:
    """Half a second of processor time at most: the clock on the wall depends on what else is running."""
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert "Usage: foveal COMMAND" in done.stdout
        assert done.stderr == "[]\n"
    assert min(times) < 0.5


def test_every_command_has_help() -> None:
    for command in ("train", "resume", "evaluate", "generate", "data", "models"):
        told = succeed(command, "--help")
        assert f"foveal {command}" in told.out
        assert told.err == ""


def test_a_reader_that_goes_away(finished: Path, foveal: list[str]) -> None:
    with subprocess.Popen(
        [*foveal, "generate", str(finished), "--tokens", "5000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(5)
        process.stdout.close()
        assert process.stderr.read() == b"foveal generate ...\n"
    assert process.returncode == 141


def test_a_fault_of_ours_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("two\nlines")

    monkeypatch.setattr("foveal.tasks.shapes.corpus.prepare_corpus", broken)
    told = run_command("train", "text.txt")
    assert told.code == 1
    assert told.err == "foveal: ValueError: two lines (an error in Foveal itself: --debug shows where)\n"
    with pytest.raises(ValueError, match="two"):
        run_command("train", "text.txt", "--debug")


FULL = {
    "preparing the data": ("cache/tokens", 2),
    "making the run": ("run", 1),
    "the log": ("run/metrics.jsonl", 6),
    "a checkpoint": ("run/checkpoints/", 12),
    "the best weights": ("run/model.safetensors", 2),
    "the picture": ("run/curves.png", 1),
}
"""Below which path the disk is full, and at which write."""


@pytest.mark.parametrize("moment", FULL)
def test_a_full_disk(here: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    (below, number), writes = FULL[moment], 0
    usual = os.write

    def full(descriptor: int, content: Any) -> int:
        nonlocal writes
        path = os.readlink(f"/proc/self/fd/{descriptor}").replace("/.", "/").removesuffix(".part")
        writes += path.replace(".part/", "/").startswith(str(here / below))
        if writes >= number:
            usual(descriptor, bytes(content)[: len(content) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return usual(descriptor, content)

    monkeypatch.setenv("FOVEAL_CACHE", str(kill.own_cache(here / "cache")))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        told = run_command(*TRAIN_COMMAND)
    assert told.code == 1
    assert told.out == ""
    assert told.last.startswith("foveal: ")
    # Checkpoints and weights are written beside the training, whose log may meet the full disk first.
    assert any(path in told.last for path in (below.rstrip("/"), "run/metrics.jsonl"))
    assert "can't write: No space left on device (" in told.last
    assert told.last.endswith(" MB free)")
    made = moment not in ("preparing the data", "making the run")
    assert Path("run").exists() == made
    succeed(*(["resume", "run"] if made else TRAIN_COMMAND))
    assert kill.ending(here / "run") == whole
