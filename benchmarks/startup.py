"""The time of `foveal --help` in seconds, beside that of an empty Python script."""

import subprocess
import sys
from pathlib import Path

from benchmarks.timing import Measurement, interleave, parse_options, report


def main() -> None:
    options = parse_options(__doc__)
    commands = {
        "foveal --help": [str(Path(sys.executable).with_name("foveal")), "--help"],
        "python": [sys.executable, "-c", ""],
    }
    runs = {
        name: lambda command=command: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        for name, command in commands.items()
    }
    samples = interleave(runs, rounds=10, seconds=0.0, quick=options.quick)
    notes = [f"an empty Python {samples.median('python'):.3f} s", samples.trust]
    report(
        [Measurement("foveal --help, seconds", samples.median("foveal --help"), 0.5, True, notes)], options
    )


if __name__ == "__main__":
    main()
