"""Train every preset on 1, 2, 4 and 8 ranks, and compare all bits of the results.

    FOVEAL_DATA=folder python -m benchmarks.preset_ranks
    FOVEAL_DATA=folder python -m benchmarks.preset_ranks --only 'gru*' --precision bfloat16

Each training is the command `foveal train` on a few hundred real rows (benchmarks/every/data.py), in 8 slots.
Compared are the weights, and every number of the log except times. A preset whose batch can't be cut is
listed with what the command says.
"""

import argparse
import json
import os
import shutil
import socket
import sys
import tempfile
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from benchmarks.every.data import task_data
from benchmarks.every.parts import Trial, base
from benchmarks.every.trial import ended, last_line, started
from benchmarks.every_part import IMPORTED
from benchmarks.kill import TIMES
from tests.support.trained_presets import trained_presets

STEPS, SLOTS = 3, 8
WORLDS = 2, 4, 8
LARGE = 8
"""The factor for the tokens of a batch that has fewer rows than slots."""


@dataclass(frozen=True)
class Job:
    """A preset, with what its trainings have in common."""

    preset: str
    data: Path
    folder: Path
    settings: tuple[str, ...]

    def train(self, ranks: int) -> str:
        """Train a new run on a number of ranks. Return the last line of standard error of a rank that failed;
        empty if none did."""
        folder = self.folder / str(ranks)
        folder.mkdir()
        command = ["train", str(self.data), "--run", "run", "--slots", str(SLOTS)]
        command += Trial(self.preset, self.preset, self.settings).arguments(STEPS)
        processes = [
            started(command, folder, variables, str(rank))
            for rank, variables in enumerate(_rank_variables(ranks))
        ]
        codes = [ended(process) for process in processes]
        failed = [rank for rank, code in enumerate(codes) if code]
        return last_line((folder / f"err{failed[0]}").read_text()) if failed else ""

    def ending(self, ranks: int) -> dict[str, Any]:
        """Return the weights and the log of a finished training."""
        run = self.folder / str(ranks) / "run"
        lines = (run / "metrics.jsonl").read_text().splitlines()
        log = [{key: value for key, value in json.loads(line).items() if key not in TIMES} for line in lines]
        return {"weights": (run / "model.safetensors").read_bytes(), "log": log}


def _rank_variables(ranks: int) -> list[dict[str, str]]:
    """Return the variables that a launcher sets for each rank; none for a single process."""
    if ranks == 1:
        return [{}]
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    shared = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    return [shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(ranks)]


def verdict(preset: str, precision: str, worlds: list[int], data: Path, folder: Path) -> str:
    """Return in words how the trainings of a preset compare; empty if all are equal."""
    settings: tuple[str, ...] = (f"training.precision={precision}", "training.keep=last")
    job = Job(preset, data, folder / "as-it-is", settings)
    job.folder.mkdir(parents=True)
    message = job.train(1)
    if message and (tokens := [one for one in base(preset).small if one.startswith("data.batch_tokens")]):
        key, _, size = tokens[0].partition("=")
        job = Job(preset, data, folder / "larger", (*settings, f"{key}={LARGE * int(size)}"))
        job.folder.mkdir()
        message = job.train(1)
    if message:
        return message
    whole = job.ending(1)
    for ranks in worlds:
        if message := job.train(ranks):
            return f"{ranks} ranks: {message}"
        other = job.ending(ranks)
        if different := [name for name in whole if whole[name] != other[name]]:
            return f"{ranks} ranks: other {', '.join(different)}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="*", metavar="PATTERN", help="presets whose names match")
    parser.add_argument("--precision", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--ranks", nargs="+", type=int, default=WORLDS, help="numbers of ranks beside 1")
    options = parser.parse_args()
    data = os.environ.get("FOVEAL_DATA")
    if data is None:
        parser.error("set FOVEAL_DATA to the folder with the data that benchmarks/README.md lists")
    chosen = [name for name in trained_presets() if fnmatch(name, options.only)]
    torch.set_num_threads(1)
    for module in IMPORTED:
        import_module(module)
    others = list[str]()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["FOVEAL_CACHE"] = str(folder / "cache")
        for number, name in enumerate(chosen, 1):
            rows = task_data(base(name).task, Path(data), folder / "data")
            assert rows is not None, f"no data for the preset {name}: add them to benchmarks/every/data.py"
            said = verdict(name, options.precision, options.ranks, rows, folder / "runs")
            shutil.rmtree(folder / "runs")
            print(f"{number}/{len(chosen)} {name}: {said or 'equal'}", file=sys.stderr, flush=True)
            others += [f"| {name} | {said} |"] if said else []
    equal = len(chosen) - len(others)
    ranks = ", ".join(map(str, [1, *options.ranks]))
    print(f"{options.precision}, {STEPS} steps in {SLOTS} slots on {ranks} ranks:")
    print(f"{equal} of {len(chosen)} presets end with the same bits")
    if others:
        print("\n".join(["", "| preset | what is said |", "|---|---|", *others]))


if __name__ == "__main__":
    main()
