"""Interleaved timing that notices other work on the machine, and the report every script ends with.

Two threads beside one more busy process can be slower by a factor of ten and more: a figure without the
CPU time that others used meanwhile means nothing. What we compare with may run in a process of its own,
where the C library's allocator is as it always is, not as `foveal train` sets it.
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
FOREIGN = 0.05
"""Foreign CPU time over wall time from which a sample is dirty."""
TRIES = 6
"""How often a dirty sample is taken again before it is kept, and counted."""


@dataclass
class Watch:
    """A span of time: seconds by the clock, and CPU seconds of every process that is not ours."""

    seconds: float = 0.0
    foreign: float = 0.0

    @property
    def dirty(self) -> bool:
        return self.foreign > FOREIGN * self.seconds + 2 * TICK  # the kernel counts in ticks


@contextmanager
def watched() -> Iterator[Watch]:
    """Time a block; processes that were started count as ours, those of `subprocess` once they have ended."""
    watch = Watch()
    busy, own, began = _busy(), _own(), time.perf_counter()
    yield watch
    watch.seconds = time.perf_counter() - began
    watch.foreign = max(0.0, (_busy() - busy) - (_own() - own))


def _busy() -> float:
    """CPU seconds of the whole machine since it started (Linux): user, nice, system, interrupts, stolen."""
    user, nice, system, _idle, _wait, irq, softirq, stolen = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + stolen) * TICK


def _own() -> float:
    return sum(os.times()[:4]) + sum(_used(child.pid) for child in active_children() if child.pid)


def _used(process: int) -> float:
    """CPU seconds of a process that runs, user's and system's."""
    facts = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(facts[11]) + int(facts[12])) * TICK


class Apart:
    """The run that `make(*arguments)` gives, in a process of its own; call it as the run itself.

    The process is a fresh one (spawned): `make` has to be importable, the arguments have to be picklable.
    """

    def __init__(self, make: Callable[..., Callable[[], object]], *arguments: object):
        context = get_context("spawn")
        self._line, theirs = context.Pipe()
        context.Process(target=_serve, args=(theirs, make, arguments), daemon=True).start()
        theirs.close()

    def __call__(self) -> Any:
        self._line.send("run")
        try:
            return self._line.recv()
        except EOFError:
            sys.exit("what we compare with ended in its own process; it said why above")


def _serve(
    line: Connection, make: Callable[..., Callable[[], object]], arguments: tuple[object, ...]
) -> None:
    run = make(*arguments)
    while True:
        try:
            line.recv()
        except EOFError:  # the benchmark is over
            return
        line.send(run())


@dataclass
class Samples:
    """Seconds a call: `seconds[name][i]` was taken in round i."""

    seconds: dict[str, list[float]]
    dirty: int = 0
    taken: int = 0

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def speedup(self, name: str, over: str) -> list[float]:
        """How many times as fast as `over` a call is, round by round."""
        return [b / a for a, b in zip(self.seconds[name], self.seconds[over], strict=True)]

    @property
    def trust(self) -> str:
        kept = sum(map(len, self.seconds.values()))
        return f"{self.dirty} of {kept} samples dirty ({self.taken - kept} taken again)"


def interleave(
    variants: Mapping[str, Callable[[], object]], rounds: int = 9, seconds: float = 1.0, quick: bool = False
) -> Samples:
    """Time the variants in turn, `rounds` times, each sample as many calls as fill `seconds`.

    The first calls (warm-up) are not timed. A dirty sample is taken again up to `TRIES` times. `quick` is
    for smoke tests: two rounds of one call.
    """
    calls = dict.fromkeys(variants, 1)
    for name, run in variants.items():
        run()
        if not quick:
            with watched() as watch:
                run()
            calls[name] = max(1, round(seconds / watch.seconds))
    samples = Samples({name: [] for name in variants})
    for number in range(2 if quick else rounds):
        print(f"round {number + 1}", file=sys.stderr)
        for name, run in variants.items():
            for _ in range(1 if quick else TRIES):
                with watched() as watch:
                    for _ in range(calls[name]):
                        run()
                samples.taken += 1
                if not watch.dirty:
                    break
            samples.dirty += watch.dirty
            samples.seconds[name].append(watch.seconds / calls[name])
    return samples


@dataclass(frozen=True)
class Figure:
    """What was measured; `goal` None if the figure is only for information."""

    what: str
    value: float
    goal: float | None = None
    at_most: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def reached(self) -> bool:
        return self.goal is None or (self.value <= self.goal if self.at_most else self.value >= self.goal)


def ratio(what: str, values: list[float], goal: float | None, *notes: str, at_most: bool = False) -> Figure:
    """The figure of a ratio: its median over the rounds, the quartiles among the notes."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return Figure(what, middle, goal, at_most, [f"quartiles {low:.3f} to {high:.3f}", *notes])


def options(description: str | None) -> argparse.Namespace:
    """`--quick` and `--json`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="smoke test: tiny, the figures mean nothing")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of rows for RESULTS.md")
    return parser.parse_args()


def report(figures: list[Figure], given: argparse.Namespace) -> None:
    """Print the figures as rows for RESULTS.md, or as one JSON object."""
    facts = machine()
    if given.json:
        print(json.dumps({"quick": given.quick, **facts, "figures": [asdict(one) for one in figures]}))
        return
    for one in figures:
        sign = "≤" if one.at_most else "≥"
        goal = "" if one.goal is None else f"{sign} {one.goal:g}" + ("" if one.reached else " **missed**")
        value = "; ".join([f"**{one.value:.4g}**", *one.notes])
        cells = [one.what, value, goal, f"`{facts['command']}`", facts["commit"]]
        print("|", " | ".join([*cells, facts["cpu"], facts["cores"], facts["torch"]]), "|")


def machine() -> dict[str, str]:
    """What a figure depends on: command, commit, processor, cores (threads, if fewer), torch."""
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
