"""Exact match of `foveal train scan` on SCAN's random split (Lake and Baroni 2018)."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.timing import Measurement, parse_options, report, timed


def main() -> None:
    options = parse_options(__doc__)
    foveal = str(Path(sys.executable).with_name("foveal"))
    budget = "20steps" if options.quick else "10epochs"
    arguments = ["train", "scan", "data.tokenizer=word", "--run", "run", "--budget", budget, "--json"]
    with tempfile.TemporaryDirectory() as folder, timed() as block:
        done = subprocess.run([foveal, *arguments], cwd=folder, stdout=subprocess.PIPE, check=True)
    result = json.loads(done.stdout)
    assert result["split"] == "test"
    notes = [
        f"`foveal {' '.join(arguments)}`",
        f"{result['steps']:,} steps in {result['seconds']:.0f} s of training",
        f"95 % interval {result['exact_interval'][0]:.4f} to {result['exact_interval'][1]:.4f}",
        f"foreign CPU time {block.foreign:.1f} s in {block.seconds:.0f} s" + " (dirty)" * block.dirty,
    ]
    what = "SCAN's random split, exact match of the 4,182 test commands"
    report([Measurement(what, result["exact"], 0.99, notes=notes)], options)


if __name__ == "__main__":
    main()
