"""Plugins of installed packages: entry points in the group `foveal.plugins`."""

import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from foveal.core.errors import UserError
from foveal.core.log import notify
from foveal.plugins.loading import import_plugin, loaded_plugin, plugin_of

GROUP = "foveal.plugins"


class InstalledPlugin(NamedTuple):
    """An installed package that names a plugin."""

    entry: str
    """The name of the entry point."""
    module: str

    @property
    def name(self) -> str:
        return self.module.partition(".")[0]

    def find(self) -> Path | None:
        """Return the file, or the folder of the package; None if there is none. Nothing is imported."""
        try:
            spec = find_spec(self.name)
        except ValueError:  # it was imported, but by no ordinary import
            return None
        if spec is None or spec.origin is None:
            return None
        path = Path(spec.origin).resolve()
        return path.parent if path.name == "__init__.py" else path


_searched: list[bool] = []


def installed_plugins() -> Iterator[InstalledPlugin]:
    """Yield the plugins that installed packages name, in the order of their names. Nothing is imported."""
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        yield InstalledPlugin(point.name, point.module)


def load_installed_plugins() -> None:
    """Import all installed plugins, once in a process.

    A plugin that can't be imported is left out, and the user is told why in one line.
    """
    if _searched:
        return
    _searched.append(True)  # plugins may look up names while they are imported
    for plugin in installed_plugins():
        if loaded_plugin(plugin.name) is not None:
            continue
        try:
            load_installed_plugin(plugin)
        except UserError as error:
            notify(f"the installed plugin {plugin.entry} is left out: {error}")


def load_installed_plugin(plugin: InstalledPlugin) -> None:
    """Import an installed plugin.

    Raises: UserError: it can't be imported.
    """
    path = plugin.find()
    if path is None and plugin.module not in sys.modules:
        raise UserError(f"there is no module {plugin.module}; install its package again")
    imported = plugin_of(plugin.module)
    place = path or (imported.path if imported else Path(plugin.name))
    import_plugin(plugin.name, place, "installed", plugin.module)
