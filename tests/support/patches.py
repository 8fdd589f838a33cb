"""Patches applied to a copy of the package."""

import os
import re
from pathlib import Path
from shutil import copytree

import foveal

HUNK = re.compile(r"^@@ .*@@.*$", re.MULTILINE)


def patched_copy(folder: Path, patch: Path | None) -> Path:
    """Return a folder with a copy of the package to which a patch is applied, for `PYTHONPATH`."""
    package = Path(foveal.__file__).parent
    copytree(package, folder / package.name, copy_function=os.link)
    if patch is not None:
        apply_patch(patch.read_text(), folder)
    return folder


def apply_patch(patch: str, folder: Path) -> None:
    """Apply a unified diff to files below a folder, wherever their lines stand now."""
    for path, text in patched_files(patch, folder).items():
        path.unlink()  # a link to the file of the package
        path.write_text(text)


def patched_files(patch: str, folder: Path) -> dict[Path, str]:
    """Return the content of the files below a folder that a unified diff changes, after the change."""
    changed = {}
    _, *files = re.split(r"^--- ", patch, flags=re.MULTILINE)
    for file in files:
        header, *hunks = HUNK.split(file)
        match = re.search(r"^\+\+\+ b/(\S+)$", header, re.MULTILINE)
        assert match is not None
        path = folder / match[1]
        text = path.read_text()
        for hunk in hunks:
            lines = hunk.strip("\n").splitlines()
            before, after = (
                "\n".join(line[1:] for line in lines if line[:1] in side) for side in (" -", " +")
            )
            assert text.count(before) == 1, f"{path}: the patch does not fit\n{before}"
            text = text.replace(before, after)
        changed[path] = text
    return changed
