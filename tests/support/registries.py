"""Registries and plugins that are put back after a test."""

from collections.abc import Iterator
from contextlib import contextmanager

from foveal.plugins import installed, loading
from foveal.plugins.registry import REGISTRIES


@contextmanager
def restored_registries() -> Iterator[None]:
    """Return a context after which registries and loaded plugins are as before it."""
    before = {kind: registry.snapshot() for kind, registry in REGISTRIES.items()}
    searched = [*installed._searched]
    plugins = loading.loaded_plugins()
    try:
        yield
    finally:
        for plugin in loading.loaded_plugins():
            if plugin not in plugins:
                loading.unload(plugin)
        for kind, registry in REGISTRIES.items():
            registry.restore(before.get(kind, {}))
        installed._searched[:] = searched
