"""Files that the user names for a result: checked before the work, not after it."""

import os
from pathlib import Path

from foveal.core.errors import UserError


def check_output_file(path: Path, option: str = "") -> None:
    """Check that a file can be written at a path. `option` is the option that named it, for the message.

    Raises: UserError: there is no such folder, it can't be written, or the path is a folder or no path.
    """
    name, folder = f"{option} {path}".lstrip(), path.parent
    if "\0" in str(path):
        raise UserError(f"{name}: a name can't hold the character NUL; leave it out")
    if not folder.is_dir():
        raise UserError(f"{name}: no folder {folder}; make it first")
    if path.is_dir():
        raise UserError(f"{name}: a folder; name a file")
    if not os.access(folder, os.W_OK):
        raise UserError(f"{name}: the folder {folder} can't be written; name a file in another")
