"""Interleaved timing that detects other work on the machine, and the report at the end of every script.

Two threads can be ten times slower or more beside one busy process, so a time means nothing without the CPU
time that other processes used meanwhile. The code that we compare with may run in a separate process, where
the C library's allocator has its default settings, not those of `foveal train`.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from multiprocessing import active_children, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TICK = 1 / os.sysconf("SC_CLK_TCK")
"""Seconds in which the kernel counts CPU time."""
MAX_FOREIGN_SHARE = 0.05
"""A sample with a larger share of foreign CPU time is dirty."""
MAX_TRIES = 6
"""A dirty sample is taken up to this number of times; the last is used, and counted as dirty."""


@dataclass
class TimedBlock:
    """Seconds that a block took, and CPU seconds that processes other than ours used meanwhile."""

    seconds: float = 0.0
    foreign: float = 0.0

    @property
    def dirty(self) -> bool:
        return self.foreign > MAX_FOREIGN_SHARE * self.seconds + 2 * TICK  # the kernel counts in ticks


@contextmanager
def timed() -> Iterator[TimedBlock]:
    """Time a block. Child processes count as ours; those of `subprocess` do once they have ended."""
    block = TimedBlock()
    busy, own, start = _busy_seconds(), _own_seconds(), time.perf_counter()
    yield block
    block.seconds = time.perf_counter() - start
    block.foreign = max(0.0, (_busy_seconds() - busy) - (_own_seconds() - own))


def _busy_seconds() -> float:
    """Return the CPU seconds of the machine since its start: user, nice, system, interrupts, stolen."""
    user, nice, system, _idle, _wait, irq, softirq, stolen = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + stolen) * TICK


def _own_seconds() -> float:
    """Return the CPU seconds of this process and its children."""
    return sum(os.times()[:4]) + sum(process_seconds(child.pid) for child in active_children() if child.pid)


def process_seconds(process: int) -> float:
    """Return the CPU seconds of a running process, user and system."""
    facts = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(facts[11]) + int(facts[12])) * TICK


class SeparateProcess:
    """A function that runs in a separate, spawned process. A call runs the function there and waits for it.

    `make(*arguments)` makes the function in that process, so `make` must be importable, and the arguments
    picklable.
    """

    def __init__(self, make: Callable[..., Callable[[], object]], *arguments: object):
        context = get_context("spawn")
        self._connection, other_end = context.Pipe()
        context.Process(target=_serve, args=(other_end, make, arguments), daemon=True).start()
        other_end.close()

    def __call__(self) -> Any:
        self._connection.send("run")
        try:
            return self._connection.recv()
        except EOFError:
            sys.exit("the separate process of the comparison has ended; its error is above")


def _serve(
    connection: Connection, make: Callable[..., Callable[[], object]], arguments: tuple[object, ...]
) -> None:
    run = make(*arguments)
    while True:
        try:
            connection.recv()
        except EOFError:  # the benchmark is over
            return
        connection.send(run())


@dataclass
class Samples:
    """Seconds per call: `seconds[name][i]` is the sample of round i."""

    seconds: dict[str, list[float]]
    dirty: int = 0
    taken: int = 0
    """All samples, with those that were taken again."""

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def speedup(self, name: str, over: str) -> list[float]:
        """Return how many times faster than `over` a call of `name` is, for each round."""
        return [b / a for a, b in zip(self.seconds[name], self.seconds[over], strict=True)]

    @property
    def trust(self) -> str:
        """The number of dirty samples, in words."""
        used = sum(map(len, self.seconds.values()))
        return f"{self.dirty} of {used} samples dirty ({self.taken - used} taken again)"


def interleave(
    variants: Mapping[str, Callable[[], object]], rounds: int = 9, seconds: float = 1.0, quick: bool = False
) -> Samples:
    """Time the variants in turn for `rounds` rounds. A sample has as many calls as take about `seconds`.

    The first calls (warm-up) are not timed. A dirty sample is taken again up to `MAX_TRIES` times in all.
    `quick` is for smoke tests: two rounds of one call.
    """
    calls = dict.fromkeys(variants, 1)
    for name, run in variants.items():
        run()
        if not quick:
            with timed() as block:
                run()
            calls[name] = max(1, round(seconds / block.seconds))
    samples = Samples({name: [] for name in variants})
    for number in range(2 if quick else rounds):
        print(f"round {number + 1}", file=sys.stderr)
        for name, run in variants.items():
            for _ in range(1 if quick else MAX_TRIES):
                with timed() as block:
                    for _ in range(calls[name]):
                        run()
                samples.taken += 1
                if not block.dirty:
                    break
            samples.dirty += block.dirty
            samples.seconds[name].append(block.seconds / calls[name])
    return samples


@dataclass(frozen=True)
class Measurement:
    """A measured value with its title and goal. A value without a goal is for information."""

    what: str
    value: float
    goal: float | None = None
    at_most: bool = False
    """The goal is an upper limit, not a lower one."""
    notes: list[str] = field(default_factory=list)

    @property
    def reached(self) -> bool:
        return self.goal is None or (self.value <= self.goal if self.at_most else self.value >= self.goal)


def ratio(
    title: str, values: list[float], goal: float | None, *notes: str, at_most: bool = False
) -> Measurement:
    """Return the measurement of a ratio: its median over the rounds, and its quartiles as a note."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return Measurement(title, middle, goal, at_most, [f"quartiles {low:.3f} to {high:.3f}", *notes])


def parse_options(description: str | None) -> argparse.Namespace:
    """Parse `--quick` and `--json`."""
    return option_parser(description).parse_args()


def option_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of `--quick` and `--json`, to which a script adds its own."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--quick", action="store_true", help="smoke test: tiny sizes; the numbers mean nothing"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of rows for RESULTS.md")
    return parser


def report(measurements: list[Measurement], options: argparse.Namespace) -> None:
    """Print the measurements as rows for RESULTS.md, or as one JSON object."""
    facts = machine()
    if options.json:
        print(
            json.dumps(
                {
                    "quick": options.quick,
                    **facts,
                    "figures": [asdict(measurement) for measurement in measurements],
                }
            )
        )
        return
    for measurement in measurements:
        goal = _goal_cell(measurement)
        value = "; ".join([f"**{measurement.value:.4g}**", *measurement.notes])
        cells = [measurement.what, value, goal, f"`{facts['command']}`", facts["commit"]]
        print("|", " | ".join([*cells, facts["cpu"], facts["cores"], facts["torch"]]), "|")


def _goal_cell(measurement: Measurement) -> str:
    if measurement.goal is None:
        return ""
    sign = "≤" if measurement.at_most else "≥"
    return f"{sign} {measurement.goal:g}" + ("" if measurement.reached else " **missed**")


def machine() -> dict[str, str]:
    """Return the facts that measurements depend on: command, commit, processor, cores or threads, torch."""
    script = getattr(sys.modules["__main__"], "__spec__", None)
    threads = os.environ.get("OMP_NUM_THREADS")
    return {
        "command": " ".join(["python -m", script.name if script else "benchmarks", *sys.argv[1:]]),
        "commit": _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "--short", "foveal") else ""),
        "cpu": _processor(),
        "cores": f"{os.cpu_count()}" + (f" ({threads} threads)" if threads else ""),
        "torch": version("torch"),
    }


def _git(*command: str) -> str:
    return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
