"""Tars in memory."""

import io
import tarfile
from collections.abc import Mapping


def tar_of(members: Mapping[str, bytes]) -> bytes:
    """Return a tar of files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()
