"""Loads plugins from Python files and packages. What is executed are the bytes that a run keeps, no other."""

import importlib
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Literal

from foveal.core.errors import FAILURES, UserError, describe_failed_import
from foveal.plugins.registry import REGISTRIES, is_ours, loading
from foveal.plugins.source import PluginSource, read_source

FILE_PREFIX = "foveal_plugin_"
"""Begins the module names of plugins of one file, so that `random.py` is no module `random`."""
Origin = Literal["file", "installed", "run", "imported"]


@dataclass(frozen=True)
class Plugin:
    """A plugin whose code was imported in this process."""

    name: str
    path: Path
    """The file, or the folder of the package."""
    origin: Origin
    """Where the code comes from: a file that the user named, an installed package, the folder of a run, or an
    import in the user's own program."""
    module: str
    """The module that was imported."""

    @cached_property
    def source(self) -> PluginSource:
        return _sources.get(self.module) or read_source(self.path)

    @property
    def root(self) -> str:
        """The first part of the names of its modules."""
        return self.module.partition(".")[0]

    def has_module(self, module: str) -> bool:
        return module.partition(".")[0] == self.root

    def defined(self, name: str) -> Callable[..., object] | None:
        """Return the class or function of a name that its module defines; None if there is none."""
        source = getattr(sys.modules.get(self.module), name, None)
        own = self.has_module(str(getattr(source, "__module__", "")))
        return source if own and callable(source) else None

    @property
    def definitions(self) -> list[str]:
        """The names of the classes and functions that its module defines."""
        return [name for name in vars(sys.modules[self.module]) if self.defined(name) is not None]

    @property
    def parts(self) -> dict[str, list[str]]:
        """The names of the parts that the plugin registered, by kind."""
        names = {kind: registry.names_from(self.has_module) for kind, registry in REGISTRIES.items()}
        return {kind: each for kind, each in names.items() if each}


_loaded: dict[str, Plugin] = {}
"""The plugins by their names."""
_sources: dict[str, PluginSource] = {}
"""The sources of plugins that Python did not import itself, by the first part of their modules' names."""


def loaded_plugins() -> list[Plugin]:
    """Return the plugins that were loaded in this process."""
    return [*_loaded.values()]


def loaded_plugin(name: str) -> Plugin | None:
    """Return the plugin with a name, if it was loaded in this process, or is a module of the user's program
    that registered parts."""
    if name in _loaded:
        return _loaded[name]
    modules = {module for registry in REGISTRIES.values() for module in registry.modules()}
    imported = (plugin_of(module) for module in sorted(modules))
    return next((plugin for plugin in imported if plugin is not None and plugin.name == name), None)


def load_plugin(path: str | Path) -> Plugin:
    """Load a plugin from a Python file, or from the folder of a package. Its parts are then known by name.

    A file that has changed is loaded again.

    Raises: UserError: there is no such file, its import fails, or a name is taken.
    """
    source = read_source(Path(path))
    earlier = _loaded.get(source.name)
    if earlier is not None and earlier.origin == "file" and earlier.path != source.path:
        raise UserError(f"two plugins are named {source.name}: {earlier.path} and {source.path}; rename one")
    return load_source(source, "file")


def load_source(source: PluginSource, origin: Origin, modules: Sequence[str] = ()) -> Plugin:
    """Load a plugin from its source, in place of an earlier one of its name with other content.

    `modules` are modules of a package that are imported, if not only the package itself.

    Raises: UserError: its import fails, or a name is taken.
    """
    earlier = _loaded.get(source.name)
    if earlier is not None and earlier.source.digest == source.digest:
        return earlier
    root = source.name if source.is_package else f"{FILE_PREFIX}{source.name}"
    if earlier is not None:
        unload(earlier)
    elif source.is_package:
        _check_package_name(source)
    _sources[root] = source
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    try:
        return import_plugin(source.name, source.path, origin, *(modules or [root]))
    except BaseException:
        _sources.pop(root)
        raise


def import_plugin(name: str, path: Path, origin: Origin, *modules: str) -> Plugin:
    """Import the modules of a plugin, and keep the plugin among those that are loaded.

    Raises: UserError: an import fails, or a name is taken. No part of the plugin is then registered.
    """
    plugin = Plugin(name, path, origin, modules[0])
    known = {*sys.modules}
    try:
        with loading(plugin.module):
            for module in modules:
                importlib.import_module(module)
    except BaseException as error:
        for module in {*sys.modules} - known:
            if plugin.has_module(module):
                del sys.modules[module]
        if isinstance(error, UserError) or not isinstance(error, FAILURES):
            raise
        raise UserError(explain_failure(error, path)) from error
    _loaded[name] = plugin
    return plugin


def unload(plugin: Plugin) -> None:
    """Take away a plugin's parts and modules, before another version of it is loaded."""
    for registry in REGISTRIES.values():
        registry.forget(plugin.has_module)
    for module in [*sys.modules]:
        if plugin.has_module(module):
            del sys.modules[module]
    _sources.pop(plugin.root, None)
    _loaded.pop(plugin.name, None)


def plugin_of(module: str) -> Plugin | None:
    """Return the plugin that a module belongs to; None for our modules, and for modules without a file.

    A module that the user's own program imported is a plugin as well: its file, or its package.
    """
    if is_ours(module):
        return None
    for plugin in _loaded.values():
        if plugin.has_module(module):
            return plugin
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        name = ".".join(parts[:end])
        if file := getattr(sys.modules.get(name), "__file__", None):
            path = Path(file).resolve()
            path = path.parent if path.name == "__init__.py" else path
            return Plugin(path.stem, path, "imported", name)
    return None


def source_in_plugins(name: str) -> Callable[..., object] | None:
    """Return the class or function of a name that a loaded plugin defines; None if there is none."""
    for plugin in _loaded.values():
        if (source := plugin.defined(name)) is not None:
            return source
    return None


def unregistered_classes() -> list[str]:
    """Return the names of the classes that loaded plugins define and do not register."""
    return [
        name
        for plugin in _loaded.values()
        for name in plugin.definitions
        if isinstance(source := plugin.defined(name), type)
        and not any(registry.name_of(source) for registry in REGISTRIES.values())
    ]


def explain_failure(error: BaseException, path: Path) -> str:
    """Return in one line why the import of a plugin failed, with the line of its file."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: not Python: {error.msg}"
    place, problem = line_in(error, path) or str(path), describe_failed_import(error)
    beside = f"{str(getattr(error, 'name', '')).partition('.')[0]}.py"
    if isinstance(error, ModuleNotFoundError) and path.is_file() and path.with_name(beside).exists():
        problem += f"; a plugin of several files, such as {beside}, is a package: a folder with __init__.py"
    return f"{place}: the plugin fails on import: {problem}"


def line_in(error: BaseException, path: Path) -> str:
    """Return the innermost file and line below a path that an error went through; empty without one."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if Path(frame.filename).is_relative_to(path)]
    return f"{inside[-1].filename}:{inside[-1].lineno}" if inside else ""


def line_in_plugin(error: BaseException) -> str:
    """Return the innermost line of a plugin that an error passed through; empty if there is none."""
    lines = [line for plugin in _loaded.values() if (line := line_in(error, plugin.path))]
    return lines[-1] if lines else ""


def _check_package_name(source: PluginSource) -> None:
    """Check that no other module has the name of a package.

    Raises: UserError: the name is taken.
    """
    other = sys.modules.get(source.name)
    if other is None and source.name not in sys.stdlib_module_names:
        return
    file = getattr(other, "__file__", None)
    if file is None or Path(file).resolve() != source.init_file.resolve():
        raise UserError(f"{source.path}: there is another module {source.name}; rename the folder")
    for module in [*sys.modules]:  # the program imported it, and now loads it as a plugin
        if module.partition(".")[0] == source.name:
            del sys.modules[module]


class _SourceLoader(SourceFileLoader):
    """Executes the source that was read once, and never a `.pyc` file, whose content has no hash."""

    def __init__(self, name: str, path: str, content: bytes):
        super().__init__(name, path)
        self._content = content

    def get_data(self, path: str) -> bytes:
        return self._content if path == self.path else super().get_data(path)

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self._content, self.path)
        return code


class _SourceFinder(MetaPathFinder):
    """Finds the modules of plugins among their sources, and nowhere else."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        root, _, rest = fullname.partition(".")
        source = _sources.get(root)
        if source is None:
            return None
        base = "/".join([source.name, *rest.split(".")] if rest else [source.name])
        for file in (f"{base}/__init__.py", f"{base}.py"):
            if file in source.files:
                place = source.path_of(file)
                loader = _SourceLoader(fullname, str(place), source.files[file])
                folders = [str(place.parent)] if file.endswith("/__init__.py") else None
                return spec_from_file_location(
                    fullname, place, loader=loader, submodule_search_locations=folders
                )
        raise ModuleNotFoundError(f"No module named {fullname!r} in {source.path}", name=fullname)


_FINDER = _SourceFinder()
