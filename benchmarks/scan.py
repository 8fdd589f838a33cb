"""Exact match on SCAN's random split (Lake and Baroni 2018) by the user's command."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.timing import Figure, options, report, watched


def main() -> None:
    given = options(__doc__)
    foveal = str(Path(sys.executable).with_name("foveal"))
    budget = "20steps" if given.quick else "10epochs"
    arguments = ["train", "scan", "data.tokenizer=word", "--run", "run", "--budget", budget, "--json"]
    with tempfile.TemporaryDirectory() as folder, watched() as watch:
        done = subprocess.run([foveal, *arguments], cwd=folder, stdout=subprocess.PIPE, check=True)
    result = json.loads(done.stdout)
    assert result["split"] == "test"
    notes = [
        f"`foveal {' '.join(arguments)}`",
        f"{result['steps']:,} steps in {result['seconds']:.0f} s of training",
        f"95 % interval {result['exact_interval'][0]:.4f} to {result['exact_interval'][1]:.4f}",
        f"foreign CPU time {watch.foreign:.1f} s in {watch.seconds:.0f} s" + " (dirty)" * watch.dirty,
    ]
    what = "SCAN's random split, exact match of the 4,182 test commands"
    report([Figure(what, result["exact"], 0.99, notes=notes)], given)


if __name__ == "__main__":
    main()
