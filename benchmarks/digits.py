"""The free spoken digits as two folders of recordings with their words: `train` and `test`.

The archive is `free_spoken_digits.zip` in the folder that FOVEAL_DATA names: 3,000 recordings of six speakers
at 8 kHz, `recordings/DIGIT_SPEAKER_N.wav`. By custom N = 0 .. 4 is the test set.
"""

import csv
import re
import zipfile
from pathlib import Path

from benchmarks.outside import write_parts

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TESTED = 5
"""Recordings of each speaker and digit that are kept for the test."""


def unpack(archive: Path, into: Path) -> dict[str, int]:
    """Write `into/train` and `into/test`, each with its metadata.csv; how many recordings each has."""
    rows: dict[str, list[tuple[str, str]]] = {"train": [], "test": []}
    with zipfile.ZipFile(archive) as file:
        for name in sorted(file.namelist()):
            found = re.fullmatch(r"recordings/((\d)_[a-z]+_(\d+)\.wav)", name)
            if found is None:
                continue
            part = "test" if int(found[3]) < TESTED else "train"
            (into / part).mkdir(parents=True, exist_ok=True)
            (into / part / found[1]).write_bytes(file.read(name))
            rows[part].append((found[1], WORDS[int(found[2])]))
    for part, found_rows in rows.items():
        with (into / part / "metadata.csv").open("w", newline="", encoding="utf-8") as table:
            csv.writer(table).writerows([("file_name", "text"), *found_rows])
    return {part: len(found_rows) for part, found_rows in rows.items()}


if __name__ == "__main__":
    write_parts(__doc__, "free_spoken_digits.zip", unpack)
