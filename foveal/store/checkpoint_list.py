"""The checkpoints of a run by their names, which are their steps. Half-written checkpoints are not listed."""

import re
from pathlib import Path


def list_checkpoints(folder: Path) -> list[Path]:
    """Return the folders of checkpoints from the oldest to the newest. A run that was sent may have none."""
    checkpoints = []
    for path in folder.iterdir() if folder.is_dir() else ():
        if match := re.fullmatch(r"(\d+)(?:-(\d+))?", path.name):
            checkpoints.append((int(match[1]), int(match[2] or 1), path))
    return [path for _, _, path in sorted(checkpoints)]
