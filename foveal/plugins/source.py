"""The source of a plugin: a Python file, or a package with all its files."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from foveal.core.errors import UserError

FOLDER = "plugins"
"""The folder of a run with the sources of plugins."""
FILE_NAME = re.compile(r"\w[\w.-]*")
"""The names that files of a plugin may have. Other files are not kept with a run."""
MAX_DATA_BYTES = 1 << 18
"""The largest file of a package, beside Python files, that is kept with a run."""
MAX_BYTES = 1 << 23
"""The largest source of a plugin."""
COMPILED = {".pyc", ".pyd", ".so"}


@dataclass(frozen=True)
class PluginSource:
    """A Python file, or a package: a folder with an `__init__.py`."""

    name: str
    """The name of the file without `.py`, or that of the package."""
    path: Path
    """The file, or the folder of the package."""
    files: Mapping[str, bytes]
    """Contents by name: `mine.py`, or `package/__init__.py` and the other files of a package."""

    @property
    def is_package(self) -> bool:
        return f"{self.name}.py" not in self.files

    @property
    def init_file(self) -> Path:
        """The file that is executed first."""
        return self.path / "__init__.py" if self.is_package else self.path

    @cached_property
    def digest(self) -> str:
        """The sha256 of names and contents."""
        return digest_of({name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()})

    @property
    def stored_files(self) -> dict[str, bytes]:
        """The contents by the names that they have in a run."""
        return {f"{FOLDER}/{name}": content for name, content in self.files.items()}

    def path_of(self, file: str) -> Path:
        """Return the path of one of the files."""
        return self.path.parent / file


@dataclass(frozen=True)
class RunPlugins:
    """The plugins that a run needs."""

    files: Mapping[str, bytes]
    """Their sources, by the names of the files in a run."""
    modules: Mapping[str, list[str]]
    """The modules to import, by plugin. None for a plugin of one file."""


NO_PLUGINS = RunPlugins({}, {})


def digest_of(hashes: Mapping[str, str]) -> str:
    """Return the sha256 of a plugin, from those of its files by name."""
    return hashlib.sha256(json.dumps(sorted(hashes.items())).encode()).hexdigest()


def read_source(path: Path) -> PluginSource:
    """Return the source of a plugin: of a Python file, or of the folder of a package.

    Raises: UserError: there is no such file or package, or it is too large.
    """
    if not path.exists():
        raise UserError(f"{path}: no such file; a plugin is a Python file, or the folder of a package")
    path = path.resolve()
    if path.is_dir() and not (path / "__init__.py").is_file():
        raise UserError(f"{path}: a folder without __init__.py is no package; name a .py file in it")
    if not path.is_dir() and path.suffix != ".py":
        raise UserError(f"{path}: a plugin is a Python file (.py), or the folder of a package")
    if not FILE_NAME.fullmatch(path.stem):
        raise UserError(f"{path}: name the file of a plugin with letters, digits, - and _ only")
    contents = _package_files(path) if path.is_dir() else {path.name: path.read_bytes()}
    size = sum(map(len, contents.values()))
    if size > MAX_BYTES:
        raise UserError(
            f"{path}: {size / 1e6:,.0f} MB of source are too large to be kept with a run: register the parts "
            "in a package of their own"
        )
    return PluginSource(path.name if path.is_dir() else path.stem, path, contents)


def _package_files(folder: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        allowed = all(FILE_NAME.fullmatch(part) and part != "__pycache__" for part in parts)
        if not allowed or not path.is_file() or path.suffix in COMPILED:
            continue
        if path.suffix == ".py" or path.stat().st_size <= MAX_DATA_BYTES:
            files["/".join((folder.name, *parts))] = path.read_bytes()
    return files


def stored_plugins(files: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the hashes of the plugins that a run keeps, by plugin and file.

    `files` are the hashes in `run.json`.
    """
    plugins: dict[str, dict[str, str]] = {}
    for name, digest in files.items():
        folder, _, rest = name.partition("/")
        if folder == FOLDER:
            plugin = rest.partition("/")[0].removesuffix(".py")
            plugins.setdefault(plugin, {})[rest] = digest
    return plugins


def read_stored(run: Path, plugin: str, names: Iterable[str]) -> PluginSource:
    """Return the source of a plugin that a run keeps."""
    folder = run / FOLDER
    files = {name: (folder / name).read_bytes() for name in names}
    first = f"{plugin}.py" if f"{plugin}.py" in files else plugin
    return PluginSource(plugin, folder / first, files)
