"""Data from outside: a file in the folder that FOVEAL_DATA names, made into the parts that are read."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path


def write_parts(told: str | None, name: str, write: Callable[[Path, Path], dict[str, int]]) -> None:
    """Run a script's command: call `write(file, into)` with the folder of --into, and print the returned
    counts."""
    parser = argparse.ArgumentParser(description=told)
    parser.add_argument("--into", type=Path, required=True, help="the folder to write")
    into = parser.parse_args().into
    data = os.environ.get("FOVEAL_DATA")
    if data is None:
        sys.exit(f"set FOVEAL_DATA to the folder that holds {name}")
    for part, count in write(Path(data) / name, into).items():
        print(f"{into}: {part}: {count:,} examples")
