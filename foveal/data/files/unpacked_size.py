"""Limits of what a packed file may unpack to."""

import zipfile
from pathlib import Path

from foveal.core.errors import UserError

MAX_UNPACKED_BYTES, MAX_COMPRESSION_RATIO = 1 << 26, 100
"""Largest size of an unpacked file: this many bytes, or this many times the packed size."""


def is_decompression_bomb(packed: int, size: int) -> bool:
    """Return whether `size` bytes are too many to unpack from `packed` bytes of a file or a zip's member."""
    return size > max(MAX_UNPACKED_BYTES, MAX_COMPRESSION_RATIO * packed)


def check_unpacked_size(path: Path, size: int, more: str = "") -> None:
    """Check that a packed file is not a decompression bomb. `size` is what it claims or has unpacked to.

    Raises: UserError: the file unpacks to implausibly many bytes.
    """
    _check(path, path.stat().st_size, f"{size:,}{more}", size)


def check_member_size(member: zipfile.Path) -> None:
    """Check that a member of a zip is not a decompression bomb.

    Raises: UserError: the member claims to unpack to implausibly many bytes.
    """
    facts = member.root.NameToInfo.get(member.at)
    if facts is not None:
        _check(member, facts.compress_size, f"{facts.file_size:,}", facts.file_size)


def _check(path: Path | zipfile.Path, packed: int, shown: str, size: int) -> None:
    if is_decompression_bomb(packed, size):
        raise UserError(f"{path}: {packed:,} bytes that claim to be {shown} unpacked; get the file again")
