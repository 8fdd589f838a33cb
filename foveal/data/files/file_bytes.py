"""The bytes of a file on disk or in a zip, and limits of the files that are opened."""

import os
import stat
import zipfile

from foveal.data.files.unpacked_size import is_decompression_bomb
from foveal.data.files.utf8 import AnyPath

MAX_FILE_BYTES = 1 << 27
"""Bytes of the largest file that is opened."""


def read_file_bytes(image: AnyPath) -> bytes | str:
    """Return the bytes of an image file, or the reason why the file is not opened."""
    try:
        size = _file_size(image)
        if isinstance(size, str):
            return size
        with image.open("rb") as file:
            return file.read(size)  # no more than the stated size of a zip's member is unpacked
    except (FileNotFoundError, KeyError):
        return f"no such file: {image}; fix the name or leave the row out"
    except Exception as error:  # many kinds, of the system, of zipfile and of its decompressors
        return f"can't be read: {getattr(error, 'strerror', None) or error}; get the file again"


def read_first_bytes(file: AnyPath, count: int) -> bytes:
    """Return at most the first `count` bytes of a regular file; none if it can't be read."""
    try:
        if isinstance(_file_size(file), str):
            return b""
        with file.open("rb") as opened:
            return opened.read(count)
    except Exception:  # many kinds, of the system, of zipfile and of its decompressors
        return b""


def _file_size(file: AnyPath) -> int | str:
    """Return the size in bytes, or the reason why the file is not opened."""
    if isinstance(file, zipfile.Path):
        member = file.root.getinfo(file.at)
        size, packed = member.file_size, member.compress_size
        if is_decompression_bomb(packed, size):
            return f"{packed:,} bytes that claim to be {size:,} unpacked; leave the file out"
    else:
        status = os.stat(file)
        size = status.st_size
        if stat.S_ISDIR(status.st_mode):
            return "a folder, not an image; name an image in it"
        if not stat.S_ISREG(status.st_mode):  # reading a pipe would block
            return "neither a file nor a folder; remove it"
    return (
        f"a file of more than {MAX_FILE_BYTES >> 20} MiB; make it smaller" if size > MAX_FILE_BYTES else size
    )
