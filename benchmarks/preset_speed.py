"""Time the training steps of presets in two checkouts, in turn.

    python benchmarks/preset_speed.py OLD NEW --only lstm,images [--renamed old=new]

OLD and NEW are the roots of two checkouts. Both run `foveal train` on the small data of goldens.py, on the
CPU. The time of a step is the median over the logged steps of a run. The ratio of a preset is the old time
over the new time, and the median over the rounds is printed. Above 1, the new checkout is faster.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from benchmarks.goldens import Job, TrainingFolder
from benchmarks.timing import machine

STEPS = 40
WARM_UP = 10
"""Steps at the start of a run that are not timed."""


def step_seconds(folder: TrainingFolder, job: Job, run: str) -> float:
    """Train a preset; return the median time of a step."""
    command = [sys.executable, "-m", "foveal", "train", job.data, "--model", job.preset, "--run", run]
    options = ["--budget", f"{STEPS}steps", "--device", "cpu", f"training.evaluate_every={STEPS}"]
    process = subprocess.run(
        [*command, *options], cwd=folder.path, env=folder.environment, capture_output=True, text=True
    )
    if process.returncode:
        sys.exit(f"{job.preset}: {process.stderr.strip()}")
    log = (folder.path / run / "metrics.jsonl").read_text().splitlines()
    seconds = [record["seconds"] for record in map(json.loads, log) if record["kind"] == "step"]
    return statistics.median(later - earlier for earlier, later in pairwise(seconds[WARM_UP:]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--only", required=True, metavar="A,B", help="names of presets in OLD")
    parser.add_argument("--renamed", default="", metavar="OLD=NEW,...", help="other names in NEW")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    new_names = dict(pair.split("=") for pair in filter(None, options.renamed.split(",")))
    names = options.only.split(",")
    presets = {name: name for name in names}, {name: new_names.get(name, name) for name in names}
    with tempfile.TemporaryDirectory() as old_folder, tempfile.TemporaryDirectory() as new_folder:
        paths, roots = (old_folder, new_folder), (options.old, options.new)
        folders = [
            TrainingFolder(Path(path), root.resolve() / "foveal")
            for path, root in zip(paths, roots, strict=True)
        ]
        jobs = [
            [job for job in folder.jobs(names) if not job.resumed]
            for folder, names in zip(folders, presets, strict=True)
        ]
        print(json.dumps(machine()))
        for old, new in zip(*jobs, strict=True):
            ratios = []
            for number in range(options.rounds):
                before, after = (
                    step_seconds(folder, job, f"runs/{job.preset}-{number}")
                    for folder, job in zip(folders, (old, new), strict=True)
                )
                ratios.append(before / after)
            low, high = min(ratios), max(ratios)
            print(f"{new.preset:24} {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f})", flush=True)


if __name__ == "__main__":
    main()
