"""Seconds and memory of the second start of labeled short texts, and megabytes a second of their preparation.

Each start is a process of its own, which prepares the rows, makes the batches and returns the first. The
memory is that of the process's own pages at the end (`RssAnon`), without the pages of mapped files, which the
system may take back at any time. The goal is that of 10 million rows, the default.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.timing import Measurement, option_parser, report

SECONDS_GOAL, ROWS, QUICK_ROWS = 5.0, 10_000_000, 100_000
START = """
import json, sys, time
from pathlib import Path
from foveal.config import DataConfig
from foveal.data.pairs.labels import LabelTarget
from foveal.data.pairs.pair import PairFormat
from foveal.data.prepare_examples import prepare_examples
from foveal.data.text.text_source import TextSource

data_format, config, start = PairFormat(TextSource(), LabelTarget()), DataConfig(), time.perf_counter()
prepared = prepare_examples(data_format, sys.argv[1], None, None, config, lambda line: None)
data_format.source.train_batches(prepared.train.examples, config, 0).batch(0, 0)
seconds = time.perf_counter() - start
status = Path("/proc/self/status").read_text()
print(json.dumps([seconds, int(status.split("RssAnon:")[1].split()[0]) / 1000]))
"""


def write_rows(path: Path, rows: int) -> None:
    """Write labeled texts of 4 to 12 words."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(5000)]
    with path.open("w") as file:
        file.write("text,label\n")
        for _ in range(rows):
            file.write(
                f"{' '.join(rng.choices(words, k=rng.randint(4, 12)))},{rng.choice(('good', 'bad'))}\n"
            )


def start(data: Path, cache: Path) -> tuple[float, float]:
    """Return the seconds and megabytes of a process that starts on the data."""
    environment = {**os.environ, "FOVEAL_CACHE": str(cache)}
    command = [sys.executable, "-c", START, str(data)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seconds, megabytes = json.loads(done.stdout)
    return seconds, megabytes


def main() -> None:
    options = option_parser(__doc__)
    options.add_argument("--rows", type=int, default=ROWS, help="rows of the data")
    options.add_argument("--folder", type=Path, help="folder where data and cache are, and stay")
    arguments = options.parse_args()
    rows = QUICK_ROWS if arguments.quick else arguments.rows
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).resolve()
        few, many, cache = folder / "few.csv", folder / "many.csv", folder / "cache"
        for path, count in ((few, rows // 10), (many, rows)):
            if not path.exists():
                write_rows(path, count)
        is_new = not cache.exists()
        start(few, cache)
        preparation, _ = start(many, cache)
        _, few_megabytes = start(few, cache)
        seconds, megabytes = start(many, cache)
        speed = Measurement("preparation, MB of text a second", many.stat().st_size / 1e6 / preparation)
    memory = [f"a tenth of the rows {few_megabytes:.0f} MB"]
    report(
        [
            Measurement(f"second start of {rows:,} rows, seconds", seconds, SECONDS_GOAL, True),
            Measurement(
                "its memory over that of a tenth of the rows", megabytes / few_megabytes, 1.1, True, memory
            ),
            *([speed] if is_new else []),
        ],
        arguments,
    )


if __name__ == "__main__":
    main()
