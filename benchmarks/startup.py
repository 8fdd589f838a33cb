"""Seconds of `foveal --help`, of `import foveal`, and of CPU until `foveal.train` ends its first step.

The training is of 200 labeled texts in memory by the default model. Its CPU seconds are those of the whole
process, Python's start and all imports included, with compiled kernels in the cache.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.timing import Measurement, interleave, parse_options, report

FIRST_STEP = """
import sys, time
import foveal

class PrintCpuSeconds(foveal.Callback):
    def on_step(self, record):
        print(time.process_time())

texts = [f"{('a fine', 'a poor')[number % 2]} film, number {number}" for number in range(200)]
labels = ["good", "bad"] * 100
data = {"text": texts, "label": labels}
foveal.train(data, callbacks=[PrintCpuSeconds()], budget="1steps", run=sys.argv[1], quiet=True)
"""


def cpu_to_first_step(folder: Path) -> float:
    """Return the CPU seconds of a process that trains, until its first step has ended."""
    command = [sys.executable, "-c", FIRST_STEP, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def main() -> None:
    options = parse_options(__doc__)
    commands = {
        "foveal --help": [str(Path(sys.executable).with_name("foveal")), "--help"],
        "import foveal": [sys.executable, "-c", "import foveal"],
        "python": [sys.executable, "-c", ""],
    }
    runs = {
        name: lambda command=command: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        for name, command in commands.items()
    }
    samples = interleave(runs, rounds=10, seconds=0.0, quick=options.quick)
    with tempfile.TemporaryDirectory() as folder:
        cpu_to_first_step(Path(folder) / "warm-up")
        first = [cpu_to_first_step(Path(folder) / str(trial)) for trial in range(1 if options.quick else 5)]
    empty = samples.median("python")
    notes = [f"an empty Python {empty:.3f} s", samples.trust]
    report(
        [
            Measurement("foveal --help, seconds", samples.median("foveal --help"), 0.5, True, notes),
            Measurement(
                "import foveal, seconds above an empty Python",
                samples.median("import foveal") - empty,
                0.1,
                True,
                notes,
            ),
            Measurement(
                "foveal.train on 200 texts in memory: CPU seconds to the end of the first step",
                median(first),
                3,
                True,
                [f"{min(first):.2f} to {max(first):.2f} s"],
            ),
        ],
        options,
    )


if __name__ == "__main__":
    main()
