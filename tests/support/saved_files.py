"""Writes the files of a checkpoint that a test has made."""

from pathlib import Path

from foveal.store import checkpoint


def save_files(folder: Path, step: int, files: dict[str, bytes], previous: Path | None, run: str) -> Path:
    chunks = ((name, [content]) for name, content in files.items())
    return checkpoint.save(folder, step, chunks, previous, run)
