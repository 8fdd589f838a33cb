"""The Free Spoken Digit Dataset as two folders of recordings with their words: `train` and `test`.

The archive is `free_spoken_digits.zip` in the folder that FOVEAL_DATA names: 3,000 recordings of six speakers
at 8 kHz, `recordings/DIGIT_SPEAKER_N.wav`. The recordings with N = 0 .. 4 are the usual test set.
"""

import csv
import re
import zipfile
from pathlib import Path

from benchmarks.outside import write_splits

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEST_RECORDINGS = 5
"""Recordings of each speaker and digit in the test split."""


def unpack(archive: Path, into: Path) -> dict[str, int]:
    """Write `into/train` and `into/test`, each with a metadata.csv; return the number of recordings."""
    rows: dict[str, list[tuple[str, str]]] = {"train": [], "test": []}
    with zipfile.ZipFile(archive) as file:
        for name in sorted(file.namelist()):
            match = re.fullmatch(r"recordings/((\d)_[a-z]+_(\d+)\.wav)", name)
            if match is None:
                continue
            split = "test" if int(match[3]) < TEST_RECORDINGS else "train"
            (into / split).mkdir(parents=True, exist_ok=True)
            (into / split / match[1]).write_bytes(file.read(name))
            rows[split].append((match[1], WORDS[int(match[2])]))
    for split, split_rows in rows.items():
        with (into / split / "metadata.csv").open("w", newline="", encoding="utf-8") as table:
            csv.writer(table).writerows([("file_name", "text"), *split_rows])
    return {split: len(split_rows) for split, split_rows in rows.items()}


if __name__ == "__main__":
    write_splits(__doc__, "free_spoken_digits.zip", unpack)
