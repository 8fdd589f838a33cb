"""One trial: the command in a process of its own, and what its run says."""

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import traceback
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

from benchmarks.every.parts import STEPS, Trial, base
from foveal import cli

CPU_SECONDS = 120
"""Maximum time of a command of STEPS steps, however busy the machine is."""
TIMED_OUT = -signal.SIGXCPU
DIVERGED, LEARNED = 1.15, 0.99
"""Last losses over that of the untrained model: more has diverged, and less has learned something."""


@dataclass
class Outcome:
    """What a trial came to. Losses are those of training batches."""

    code: int
    message: str = ""
    """The last line of standard error of a failed command."""
    first: float | None = None
    constant: float | None = None
    """The loss of one answer for all, as the command expects it: ln of the number of answers."""
    last: float | None = None
    """The mean of the last five steps."""
    step_seconds: float | None = None
    refused_steps: int = 0
    views: dict[str, str] = field(default_factory=dict)
    """What went wrong in views of the run."""

    @property
    def verdict(self) -> str:
        """Return in words how the trial failed; empty if nothing is wrong."""
        if self.code == TIMED_OUT:
            return "takes too long"
        if self.code == 2:
            return "refused"
        if self.code:
            return "diverged" if "not finite" in self.message else "crash"
        if self.first is None or self.last is None:
            return ""
        untrained = min(filter(None, (self.first, self.constant)))
        if not self.last <= DIVERGED * untrained or self.refused_steps:
            return "diverged"
        return "nothing learned" if self.last > LEARNED * untrained else ""


def run(arguments: list[str], folder: Path, limit: int = CPU_SECONDS) -> tuple[int, str, str]:
    """Run the command in `folder`, in a copy of this process. Return its exit code and its two outputs."""
    code = ended(started(arguments, folder, {}, "", limit))
    return code, (folder / "out").read_text(), (folder / "err").read_text()


def started(
    arguments: list[str], folder: Path, variables: dict[str, str], suffix: str, limit: int = CPU_SECONDS
) -> int:
    """Start the command in `folder`, in a copy of this process with more variables in its environment.

    Return its process. Its outputs are the files `out` and `err` with the suffix.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process == 0:
        os.environ |= variables
        _run_here(arguments, folder, suffix, limit)
    return process


def ended(process: int) -> int:
    """Return the exit code of a process, after its end."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _run_here(arguments: list[str], folder: Path, suffix: str, limit: int) -> None:
    """Run the command in at most `limit` seconds of CPU time, and end this process."""
    code = 1
    try:
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(name + suffix, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.argv = ["foveal", *arguments]
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            traceback.print_exc()
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
    finally:
        os._exit(code)


def attempt(trial: Trial, data: Path, folder: Path, views: list[str], steps: int) -> Outcome:
    """Train in `folder`, which is deleted afterwards, and look at the run with all views."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = ["train", str(data), *trial.arguments(steps), "--run", "run", "--json"]
    code, out, err = run(command, folder, CPU_SECONDS * max(steps, STEPS) // STEPS)
    outcome = Outcome(code, "" if code == 0 else last_line(err))
    if match := re.search(r"ln \d+ = ([\d.]+) expected", err):
        outcome.constant = float(match[1])
    if (log := folder / "run" / "metrics.jsonl").exists():
        _read_log(outcome, [json.loads(line) for line in log.read_text().splitlines()])
    if code == 0 and base(trial.preset).closed_form:
        outcome.first, outcome.last = outcome.constant, json.loads(out).get("loss")
    if code == 0:
        for view in views:
            outcome.views |= look(view, folder)
    shutil.rmtree(folder)
    return outcome


def look(view: str, folder: Path) -> dict[str, str]:
    """Return what is wrong with a view of the run: it shows something, or answers with a line."""
    code, out, err = run(["inspect", "run", view, "--out", f"{view}.png"], folder)
    if code == 2 and last_line(err).startswith("foveal: "):
        return {}
    if code == 0 and out.strip() and (folder / f"{view}.png").exists():
        return {}
    return {view: last_line(err) or f"exit code {code} with nothing shown"}


def last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _read_log(outcome: Outcome, records: list[dict[str, Any]]) -> None:
    steps = [record for record in records if record["kind"] == "step"]
    outcome.refused_steps = sum(record["kind"] == "refused" for record in records)
    losses = [record.get("loss", record["objective"]) for record in steps]
    if losses:
        outcome.first, outcome.last = losses[0], mean(losses[-5:])
    times = [record["seconds"] for record in steps]
    if len(times) > 1:
        outcome.step_seconds = median(later - before for before, later in pairwise(times))


def to_json(outcome: Outcome) -> str:
    return json.dumps(asdict(outcome))
