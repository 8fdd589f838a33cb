"""What `foveal train` learns by default in its three minutes: nats per character on tiny Shakespeare.

The text is `tinyshakespeare.txt` in the folder that FOVEAL_DATA names; its first 90 % of characters are
trained on, the last 10 % are scored. The command is the user's, with nothing set.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.timing import Figure, options, report, watched


def split(folder: Path) -> None:
    data = os.environ.get("FOVEAL_DATA")
    if data is None:
        sys.exit("set FOVEAL_DATA to the folder that holds tinyshakespeare.txt")
    text = (Path(data) / "tinyshakespeare.txt").read_text(encoding="utf-8")
    cut = len(text) * 9 // 10
    (folder / "train.txt").write_text(text[:cut], encoding="utf-8")
    (folder / "valid.txt").write_text(text[cut:], encoding="utf-8")


def main() -> None:
    given = options(__doc__)
    foveal = str(Path(sys.executable).with_name("foveal"))
    arguments = ["train", "train.txt", "--valid", "valid.txt", "--run", "run", "--json"]
    arguments += ["--budget", "20steps"] if given.quick else []
    with tempfile.TemporaryDirectory() as folder:
        split(Path(folder))
        with watched() as watch:
            done = subprocess.run([foveal, *arguments], cwd=folder, stdout=subprocess.PIPE, check=True)
    result = json.loads(done.stdout)
    assert result["split"] == "valid"
    notes = [
        f"`foveal {' '.join(arguments)}`",
        f"{result['steps']:,} steps in {result['seconds']:.0f} s of training",
        f"foreign CPU time {watch.foreign:.1f} s in {watch.seconds:.0f} s" + " (dirty)" * watch.dirty,
    ]
    what = "Demo on tiny Shakespeare, nats per character"
    report([Figure(what, result["loss"], 1.5, at_most=True, notes=notes)], given)


if __name__ == "__main__":
    main()
