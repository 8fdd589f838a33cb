"""Bits per character of `foveal train DATA` without settings, beside those of compressors.

    python -m benchmarks.compressors DATA

DATA is a file or folder of text, such as some hundred kilobytes of source code. A compressor's bits are those
by which its output grows if the test text is appended to the training text, which it has then read.
"""

import argparse
import bz2
import json
import lzma
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.timing import Measurement, report, timed
from foveal.config import DataConfig
from foveal.data.prepare_corpus import prepare_corpus

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "bzip2": lambda text: bz2.compress(text, 9),
    "xz": lambda text: lzma.compress(text, preset=9 | lzma.PRESET_EXTREME),
}


def compressed_bits(data: str) -> dict[str, float]:
    """Return the bits per character of the test text for each compressor, split as `foveal train` does."""
    prepared = prepare_corpus(data, DataConfig(), None, None, lambda line: print(line, file=sys.stderr))
    assert prepared.test is not None
    train, test = (
        prepared.processor.decode(np.asarray(tokens).tolist()) for tokens in (prepared.train, prepared.test)
    )
    return {
        name: 8 * (len(run((train + test).encode())) - len(run(train.encode()))) / len(test)
        for name, run in COMPRESSORS.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", metavar="DATA", help="a file or folder of text")
    parser.add_argument("--quick", action="store_true", help="20 steps; the numbers mean nothing")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of rows for RESULTS.md")
    options = parser.parse_args()
    bits = compressed_bits(options.data)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "foveal", "train", str(Path(options.data).absolute())]
        command += ["--run", str(Path(folder) / "run"), "--json", *["--budget", "20steps"] * options.quick]
        with timed() as block:
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    result = json.loads(done.stdout)
    counts = result["baseline"]["bits_per_character"]
    notes = [
        *(f"{name} {value:.3f}" for name, value in bits.items()),
        f"n-gram counts {counts:.3f}",
        f"{result['steps']:,} steps in {result['seconds']:.0f} s of training",
        f"foreign CPU time {block.foreign:.1f} s in {block.seconds:.0f} s" + " (dirty)" * block.dirty,
    ]
    what = f"Language model of {Path(options.data).name}, bits per character"
    report([Measurement(what, result["bits_per_character"], bits["bzip2"], True, notes)], options)


if __name__ == "__main__":
    main()
