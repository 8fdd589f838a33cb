"""Training on two ranks of one thread against one process of two threads, and the cost of slots.

All trainings are `foveal train` with the same settings and data. Their speed is that of their steps after the
first ones, from the logs of the runs. The commands take turns.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.goldens import write_classes, write_text
from benchmarks.timing import Measurement, option_parser, ratio, report, timed

ROUNDS = 3
GOAL = 0.95
FIRST_STEPS = 5
"""Steps that are not counted."""
RANKS, PROCESS, ONE_SLOT = "two ranks", "one process", "one process, one slot"
COMMANDS = {RANKS: (1, ("--ranks", "2")), PROCESS: (2, ("--slots", "2")), ONE_SLOT: (2, ())}
"""The number of threads of a process, and the options."""


@dataclass(frozen=True)
class Case:
    """A preset or network, its data, and steps that take some seconds."""

    model: str
    write: Callable[[Path], str]
    steps: int
    settings: tuple[str, ...]


CASES = (
    Case("lstm", lambda folder: write_text(folder, 20_000), 30, ("data.batch_tokens=4096",)),
    Case("attention", lambda folder: write_text(folder, 20_000), 20, ("data.batch_tokens=8192",)),
    Case("resnet-18", lambda folder: write_classes(folder, 600), 12, ("data.image.batch_size=32",)),
)


def steps_per_second(case: Case, data: str, folder: Path, name: str, steps: int) -> float:
    """Train in a new run, and return the speed of its steps."""
    threads, options = COMMANDS[name]
    run = folder / f"run-{len([*folder.glob('run-*')])}"
    command = [sys.executable, "-m", "foveal", "train", data, "--model", case.model, "--run", str(run), "-q"]
    command += [
        *options,
        "--budget",
        f"{steps}steps",
        "--device",
        "cpu",
        "training.keep=last",
        *case.settings,
    ]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    subprocess.run(command, cwd=folder, check=True, env=environment, stdout=subprocess.DEVNULL)
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    seconds = [record["seconds"] for record in records if record["kind"] == "step"]
    first = min(FIRST_STEPS, len(seconds) - 2)
    return float((len(seconds) - 1 - first) / (seconds[-1] - seconds[first]))


def measure(case: Case, quick: bool) -> list[Measurement]:
    """Return the speed of two ranks over one process, and that of slots over a whole batch."""
    speeds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    dirty = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder, inputs = Path(temporary), Path(temporary, "data")
        inputs.mkdir()
        data = str(inputs / case.write(inputs))
        for number in range(1 if quick else ROUNDS):
            print(f"{case.model}, round {number + 1}", file=sys.stderr)
            for name in COMMANDS:
                with timed() as block:
                    speeds[name].append(
                        steps_per_second(case, data, folder, name, 4 if quick else case.steps)
                    )
                dirty += block.dirty
    trust = f"{dirty} of {sum(map(len, speeds.values()))} trainings beside other work"
    return [
        _over(
            f"{case.model}: two ranks of one thread over one process of two, speed",
            speeds,
            RANKS,
            PROCESS,
            GOAL,
            trust,
        ),
        _over(
            f"{case.model}: two slots over whole batches, one process, speed",
            speeds,
            PROCESS,
            ONE_SLOT,
            None,
            trust,
        ),
    ]


def _over(
    title: str, speeds: dict[str, list[float]], one: str, other: str, goal: float | None, trust: str
) -> Measurement:
    values = [a / b for a, b in zip(speeds[one], speeds[other], strict=True)]
    values = values * 2 if len(values) == 1 else values
    medians = [f"{sorted(speeds[name])[len(speeds[name]) // 2]:.3g}" for name in (one, other)]
    return ratio(title, values, goal, f"{medians[0]} against {medians[1]} steps a second", trust)


def main() -> None:
    parser = option_parser(__doc__)
    models = [case.model for case in CASES]
    parser.add_argument("--only", nargs="+", choices=models, default=models, help="what to train")
    options = parser.parse_args()
    chosen = [case for case in CASES if case.model in options.only]
    report([figure for case in chosen for figure in measure(case, options.quick)], options)


if __name__ == "__main__":
    main()
