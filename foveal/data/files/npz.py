"""Arrays from `.npz` files. The size that a file claims is checked before its arrays are read."""

import zipfile
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.data.files.tables import list_columns
from foveal.data.files.unpacked_size import check_unpacked_size
from foveal.data.files.utf8 import open_file

SOURCE_NAMES, LABEL_NAMES = ("x", "X", "data"), ("y", "Y", "target", "labels", "label")
"""Names of the arrays of sources and of their labels, the usual ones first."""
ARRAYS_HINT = (
    "name the arrays of series x (series, steps, channels) and y, those of pictures images and labels "
    "(numpy.savez)"
)
Shapes = dict[str, tuple[int, ...]]
"""The shape of each array of a file, by the array's name."""


def array_shapes(path: Path) -> Shapes:
    """Return the shapes of the arrays of a file, from their headers alone. A damaged header has no axes.
    Empty if the file is damaged."""
    try:
        with zipfile.ZipFile(path) as members:
            return {name.removesuffix(".npy"): _shape(members, name) for name in members.namelist()}
    except (zipfile.BadZipFile, UnicodeDecodeError, OSError):
        return {}


def _shape(members: zipfile.ZipFile, name: str) -> tuple[int, ...]:
    try:
        with members.open(name) as member:
            is_first = np.lib.format.read_magic(member) == (1, 0)
            read = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
            shape: tuple[int, ...] = read(member)[0]
            return shape
    except Exception:  # many kinds, of numpy, zipfile, zlib and tokenize; read_arrays reports the damage
        return ()


def first_name(names: Sequence[str], known: Collection[str]) -> str | None:
    """Return the first of the `names` that is `known`; None if there is no such name."""
    return next((name for name in names if name in known), None)


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
            hint = ARRAYS_HINT if name in SOURCE_NAMES else "save it with numpy.savez"
            raise UserError(f"{path}: no array '{name}' among {among}; {hint}")
    for name, array in arrays.items():
        if not array.size:
            raise UserError(f"{path}: the array '{name}' {array.shape} has no values; give values")
    return arrays
