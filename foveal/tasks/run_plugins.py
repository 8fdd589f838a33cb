"""The plugins that a run needs: those whose parts its config or its data name."""

from collections.abc import Iterable, Iterator

from foveal.config import Config
from foveal.core.log import notify
from foveal.data.datasets.dataset_registry import DATASETS
from foveal.plugins.loading import plugin_of
from foveal.plugins.part_settings import named_parts
from foveal.plugins.registry import is_ours, registry_of
from foveal.plugins.source import RunPlugins
from foveal.tasks.read_settings import config_sections


def run_plugins(config: Config, data: Iterable[str | None]) -> RunPlugins:
    """Return the plugins with the parts that a config names, and with the data sets among `data`.

    The log tells of parts that no file has, since no other process can open the run.
    """
    files, modules = dict[str, bytes](), dict[str, list[str]]()
    for kind, name in sorted({*_parts(config, data)}):
        module = registry_of(kind).module_of(name)
        plugin = plugin_of(module)
        if plugin is not None:
            files |= plugin.source.stored_files
            if plugin.source.is_package:
                modules[plugin.name] = sorted({*modules.get(plugin.name, ()), module})
        elif not is_ours(module):
            notify(
                f"the {kind} {name} is in no file, so only this session can open the run; write it into a "
                "file, and load it with foveal.load_plugin"
            )
    return RunPlugins(files, modules)


def _parts(config: Config, data: Iterable[str | None]) -> Iterator[tuple[str, str]]:
    """Yield the kind and the name of each part."""
    for path, section in config_sections(config).items():
        for part in named_parts(section, path):
            yield part.registry.kind, part.name
    yield from (("data set", name) for name in data if name is not None and name in DATASETS)
