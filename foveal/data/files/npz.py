"""Arrays from `.npz` files. The size that a file claims is checked before its arrays are read."""

import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.data.files.tables import list_columns
from foveal.data.files.unpacked_size import check_unpacked_size
from foveal.data.files.utf8 import open_file


def read_arrays(path: Path, needed: Sequence[str], optional: Sequence[str] = ()) -> dict[str, NDArray[Any]]:
    """Return the arrays `needed`, and those of `optional` that the file has. Arrays of Python objects would
    need pickle, and are rejected.

    Raises: UserError: the file is damaged, would unpack to implausibly many bytes, lacks an array, or an
        array has no values.
    """
    with open_file(path) as file:
        try:
            with suppress(zipfile.BadZipFile), zipfile.ZipFile(file) as members:
                check_unpacked_size(path, sum(member.file_size for member in members.infolist()))
            file.seek(0)
            with np.load(file, allow_pickle=False) as stored:
                names = sorted(stored)
                arrays = {name: np.atleast_1d(stored[name]) for name in (*needed, *optional) if name in names}
        except UserError:
            raise
        except Exception as error:  # many kinds, of numpy, zipfile and zlib
            raise UserError(f"{path}: not readable as .npz: {error}; save it with numpy.savez") from None
    for name in needed:
        if name not in arrays:
            among = list_columns(names)
            raise UserError(f"{path}: no array '{name}' among {among}; save it with numpy.savez")
    for name, array in arrays.items():
        if not array.size:
            raise UserError(f"{path}: the array '{name}' {array.shape} has no values; give values")
    return arrays
