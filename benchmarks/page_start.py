"""Seconds from `foveal inspect RUN --open` to its address, and to the first view in Chromium.

Chromium runs already. The CPU seconds, user and system, are those of the server until the first view is
drawn. With OTHER, the folder of another checkout, its starts are interleaved with ours.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.timing import ROOT, Measurement, option_parser, process_seconds, report
from tests.support.browser import launched_browser

SECONDS_ASKED = 3.0
TRIALS = 7
TEXT = "The quick brown fox jumps over the lazy dog, and the dog sleeps on.\n" * 300


class Start(NamedTuple):
    """Seconds of one start."""

    address: float
    view: float
    cpu: float


def start(browser: Any, run: Path, checkout: Path) -> Start:
    """Start the page of a run, and end it when the first view is drawn."""
    command = [sys.executable, "-m", "foveal", "inspect", str(run), "--open", "--no-browser", "-q"]
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    began = time.perf_counter()
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=checkout)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        printed = time.perf_counter() - began
        page = browser.new_page()
        page.goto(address, wait_until="commit")
        page.wait_for_selector(".payload canvas, .payload svg", timeout=120_000)
        shown = time.perf_counter() - began
        seconds = process_seconds(server.pid)
        page.close()
    finally:
        server.terminate()
        server.wait()
    return Start(printed, shown, seconds)


def train(folder: Path) -> Path:
    """Train a small model on a text."""
    (folder / "notes.txt").write_text(TEXT)
    command = [sys.executable, "-m", "foveal", "train", "notes.txt", "--model", "attention", "--run", "run"]
    subprocess.run([*command, "--budget", "20steps", "-q", "model.layers=2"], cwd=folder, check=True)
    return folder / "run"


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("other", nargs="?", type=Path, help="another checkout")
    options = parser.parse_args()
    checkouts = {"": ROOT} | ({" of OTHER": options.other.resolve()} if options.other else {})
    starts: dict[str, list[Start]] = {name: [] for name in checkouts}
    with tempfile.TemporaryDirectory() as folder, launched_browser() as browser:
        run = train(Path(folder))
        for trial in range(1 if options.quick else 1 + TRIALS):
            for name, checkout in checkouts.items():
                one = start(browser, run, checkout)
                if trial or options.quick:  # the first reads files that are not in memory yet
                    starts[name].append(one)
    figures = []
    for name, rows in starts.items():
        spread = f"{min(row.view for row in rows):.2f} to {max(row.view for row in rows):.2f} s"
        cpu = f"CPU {median(row.cpu for row in rows):.2f} s"
        address = median(row.address for row in rows)
        figures += [
            Measurement(f"foveal inspect --open{name}: seconds to the address", address, 1.0, True, []),
            Measurement(
                f"foveal inspect --open{name}: seconds to the first view",
                median(row.view for row in rows),
                SECONDS_ASKED,
                True,
                [spread, cpu],
            ),
        ]
    report(figures, options)


if __name__ == "__main__":
    main()
