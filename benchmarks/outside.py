"""The command of scripts that split a file from the folder that FOVEAL_DATA names."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path


def write_splits(description: str | None, name: str, write: Callable[[Path, Path], dict[str, int]]) -> None:
    """Call `write(file, into)`, where `into` is the folder that --into names, and print the returned counts.

    `name` is the name of the file.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--into", type=Path, required=True, help="the folder to write")
    into = parser.parse_args().into
    data = os.environ.get("FOVEAL_DATA")
    if data is None:
        sys.exit(f"set FOVEAL_DATA to the folder that holds {name}")
    for split, count in write(Path(data) / name, into).items():
        print(f"{into}: {split}: {count:,} examples")
