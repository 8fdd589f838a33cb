"""Measure how long a training stands still for a checkpoint, over the time that writing it takes.

    python benchmarks/checkpoint_stall.py

A language model of about 70 million parameters saves a checkpoint with AdamW's moments. The stall is the time
in which no step is computed: the copy of the state, and the wait for a checkpoint before. Writing is the time
from then on until the checkpoint has its name. Beside the ratio stands how much longer the steps take
meanwhile, since writing needs a part of a core for the checksums.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from unittest.mock import patch

from benchmarks.kill import story

GOAL = 0.05
SETTINGS = (
    "model.layers=8",
    "model.attention.heads=8",
    "data.context_length=16",
    "data.batch_tokens=64",
    "training.evaluate_every=1000000",
    "training.final_test=false",
    "training.statistics=false",
    "training.keep=last",
    "training.checkpoint_seconds=15",
)
WIDTH, QUICK_WIDTH = 832, 64


class Clock:
    """Wraps the methods that save, and notes when they are called."""

    def __init__(self) -> None:
        self.stalls: list[float] = []
        self.writes: list[tuple[float, float]] = []
        self.steps: list[tuple[float, float]] = []


def train(folder: str, width: int, steps: int, threads: int) -> None:
    """Train in this process, and print the seconds of stalls, writes and steps as JSON."""
    import time

    import torch

    from foveal.cli import main
    from foveal.store.checkpoint import Draft
    from foveal.training import trainer
    from foveal.training.run_files import RunFiles
    from foveal.training.saving import Saving
    from foveal.training.step import train_step

    torch.set_num_threads(threads)
    clock, begin, begin_save, publish = Clock(), Saving.begin, RunFiles.begin_save, Draft.publish

    def timed_begin(self: Saving) -> None:
        started = time.perf_counter()
        begin(self)
        clock.stalls.append(time.perf_counter() - started)

    def timed_save(self: RunFiles, carries: object) -> None:
        begin_save(self, carries)  # type: ignore[arg-type]
        clock.writes.append((time.perf_counter(), 0.0))

    def timed_publish(self: Draft, *arguments: object) -> Path:
        path = publish(self, *arguments)  # type: ignore[arg-type]
        clock.writes[-1] = clock.writes[-1][0], time.perf_counter()
        return path

    def timed_step(*arguments: object, **named: object) -> object:
        started = time.perf_counter()
        result = train_step(*arguments, **named)  # type: ignore[arg-type]
        clock.steps.append((started, time.perf_counter()))
        return result

    os.chdir(folder)
    sys.argv = [
        "foveal",
        "train",
        "text.txt",
        "--model",
        "attention",
        "--run",
        "run",
        "--device",
        "cpu",
        "-q",
    ]
    sys.argv += [*SETTINGS, f"model.width={width}", "--budget", f"{steps}steps"]
    with (
        patch.object(Saving, "begin", timed_begin),
        patch.object(RunFiles, "begin_save", timed_save),
        patch.object(Draft, "publish", timed_publish),
        patch.object(trainer, "train_step", timed_step),
    ):
        main()
    print(json.dumps(vars(clock)))


def measure(width: int, steps: int, threads: int) -> dict[str, list[float]]:
    """Return the seconds of each stall and each write, and of the steps during a write and beside it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "text.txt").write_text(story(2000))
        command = [sys.executable, "-m", "benchmarks.checkpoint_stall", "--inside", folder]
        command += ["--width", str(width), "--steps", str(steps), "--threads", str(threads)]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    clock = json.loads(output.splitlines()[-1])
    writes = [(begin, end) for begin, end in clock["writes"][:-1] if end]  # nothing goes on beside the last
    during, beside = list[float](), list[float]()
    for begin, end in clock["steps"][2:]:
        overlaps = any(begin < last and first < end for first, last in writes)
        (during if overlaps else beside).append(end - begin)
    return {
        "stalls": clock["stalls"][: len(writes)],
        "writes": [end - begin for begin, end in writes],
        "steps during a write": during,
        "steps beside": beside,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--width", type=int, default=WIDTH)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a small model, to try out the benchmark")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        train(options.inside, options.width, options.steps, options.threads)
        return
    width = QUICK_WIDTH if options.quick else options.width
    seconds = measure(width, options.steps, options.threads)
    for name, values in seconds.items():
        if values:
            print(f"{name}: {len(values)}, {median(values):.3f} s in the middle, {sum(values):.2f} s in all")
    if not seconds["writes"] or not seconds["steps beside"]:
        raise SystemExit("too few steps: no checkpoint was written beside the training")
    ratio = sum(seconds["stalls"]) / sum(seconds["writes"])
    print(f"stall over writing: {ratio:.3f} (goal: at most {GOAL})")
    if during := seconds["steps during a write"]:
        longer = median(during) / median(seconds["steps beside"]) - 1
        print(f"steps during a write take {100 * longer:.0f} % longer")
    raise SystemExit(ratio > GOAL)


if __name__ == "__main__":
    main()
