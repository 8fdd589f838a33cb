"""The bytes of a file of any kind, on disk or in a zip; and which files are not opened."""

import os
import stat
import zipfile

from foveal.data.files.utf8 import AnyPath

MAX_FILE_BYTES = 1 << 27
"""Bytes of the largest file that is opened."""
MAX_UNPACKED_BYTES, MAX_COMPRESSION_RATIO = 1 << 26, 100
"""So many bytes may come out of a packed file, or so many times its own."""


def read_file_bytes(image: AnyPath) -> bytes | str:
    """What is in the file of a picture; or why it is not opened."""
    try:
        weight = _file_size(image)
        if isinstance(weight, str):
            return weight
        with image.open("rb") as opened:
            return opened.read(weight)  # of a zip's member no more is unpacked
    except Exception as error:  # of the system, and of zipfile and its decompressors, of many kinds
        return f"can't be read: {getattr(error, 'strerror', None) or error}; get the file anew"


def _file_size(file: AnyPath) -> int | str:
    """Bytes in it, or why it is not to be opened."""
    if isinstance(file, zipfile.Path):
        member = file.root.getinfo(file.at)
        size, packed = member.file_size, member.compress_size
        if is_decompression_bomb(packed, size):
            return f"{packed:,} bytes that say they are {size:,} unpacked; leave it out"
    else:
        status = os.stat(file)
        size = status.st_size
        if stat.S_ISDIR(status.st_mode):
            return "a folder, and one picture is wanted; name one in it"
        if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for
            return "neither a file nor a folder; take it away"
    return (
        f"a file of more than {MAX_FILE_BYTES >> 20} MiB; make it smaller" if size > MAX_FILE_BYTES else size
    )


def is_decompression_bomb(packed: int, size: int) -> bool:
    """Whether `size` bytes are too many to come out of a file, or a member of a zip, of `packed` bytes."""
    return size > max(MAX_UNPACKED_BYTES, MAX_COMPRESSION_RATIO * packed)
