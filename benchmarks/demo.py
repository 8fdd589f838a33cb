"""Loss of `foveal train` with default settings on tiny Shakespeare, in nats per character.

The text is `tinyshakespeare.txt` in the folder that FOVEAL_DATA names. The first 90 % of its characters are
for training, the last 10 % are scored.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.timing import Measurement, parse_options, report, timed


def split(folder: Path) -> None:
    """Write `train.txt` and `valid.txt` into a folder."""
    data = os.environ.get("FOVEAL_DATA")
    if data is None:
        sys.exit("set FOVEAL_DATA to the folder that holds tinyshakespeare.txt")
    text = (Path(data) / "tinyshakespeare.txt").read_text(encoding="utf-8")
    cut = len(text) * 9 // 10
    (folder / "train.txt").write_text(text[:cut], encoding="utf-8")
    (folder / "valid.txt").write_text(text[cut:], encoding="utf-8")


def main() -> None:
    options = parse_options(__doc__)
    foveal = str(Path(sys.executable).with_name("foveal"))
    arguments = ["train", "train.txt", "--valid", "valid.txt", "--run", "run", "--json"]
    arguments += ["--budget", "20steps"] if options.quick else []
    with tempfile.TemporaryDirectory() as folder:
        split(Path(folder))
        with timed() as block:
            done = subprocess.run([foveal, *arguments], cwd=folder, stdout=subprocess.PIPE, check=True)
    result = json.loads(done.stdout)
    assert result["split"] == "valid"
    notes = [
        f"`foveal {' '.join(arguments)}`",
        f"{result['steps']:,} steps in {result['seconds']:.0f} s of training",
        f"foreign CPU time {block.foreign:.1f} s in {block.seconds:.0f} s" + " (dirty)" * block.dirty,
    ]
    what = "Demo on tiny Shakespeare, nats per character"
    report([Measurement(what, result["loss"], 1.5, at_most=True, notes=notes)], options)


if __name__ == "__main__":
    main()
