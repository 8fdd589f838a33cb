"""Data in which the row in the middle can't be read."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np


def spoil_middle(data: Path, copy: Path) -> tuple[Path, int, int]:
    """Copy data with a row in the middle that can't be read. Return the copy, the row, and the number of
    rows."""
    if data.is_dir():
        return spoil_folder(data, copy)
    copy.mkdir()
    path = copy / data.name
    if data.suffix == ".npz":
        return (path, *spoil_arrays(data, path))
    separator, text = ("\n\n" if data.suffix == ".conllu" else "\n"), data.read_text()
    rows = text.rstrip("\n").split(separator)
    header = {".csv": 1, ".tsv": 1, ".ts": 1 + next((i for i, row in enumerate(rows) if row == "@data"), 0)}
    start = header.get(data.suffix, 0)
    middle = (start + len(rows)) // 2
    rows[middle] = "1\tno tag" if data.suffix == ".conllu" else "{neither\tnor\tthis: 1, a, b, c, d"
    path.write_text(separator.join(rows) + "\n")
    return path, middle - start, len(rows) - start


def spoil_arrays(data: Path, path: Path) -> tuple[int, int]:
    """Copy arrays of series or clips, in which one is NaN or has no frames."""
    arrays: dict[str, Any] = dict(np.load(data))
    count = len(arrays["lengths"])
    middle = count // 2
    if "clips" in arrays:
        arrays["lengths"][middle] = 0
    else:
        arrays["x"] = arrays["x"].astype(float)
        start = int(arrays["lengths"][:middle].sum()) if arrays["x"].ndim == 2 else middle
        arrays["x"][start] = np.nan
    np.savez(path, **arrays)
    return middle, count


def spoil_folder(data: Path, copy: Path) -> tuple[Path, int, int]:
    """Copy a folder of files, in which one file is not what its name says, or one question no text."""
    shutil.copytree(data, copy)
    table = copy / "metadata.jsonl"
    if (
        table.exists()
        and "question" in (rows := [json.loads(line) for line in table.read_text().splitlines()])[0]
    ):
        rows[len(rows) // 2]["question"] = ""
        table.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return copy, len(rows) // 2, len(rows)
    files = sorted(path for path in copy.rglob("*") if path.is_file() and "metadata" not in path.name)
    files = sorted(files, key=lambda path: (len(path.relative_to(copy).parts), path))
    middle = len(files) // 2
    files[middle].write_text("not what its name says")
    return copy, middle, len(files)
