"""What the user names for a check: a run, a preset, a plugin, or a class of their own."""

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from foveal.config import preset_names, suggest
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.models.network_registry import NETWORKS
from foveal.plugins.installed import installed_plugins, load_installed_plugin
from foveal.plugins.loading import Plugin, load_plugin, loaded_plugin
from foveal.plugins.references import REFERENCE
from foveal.store.manifest import MANIFEST_FILE
from foveal.studies.check.check import Target
from foveal.studies.check.model import check_model
from foveal.studies.check.module import module_target
from foveal.studies.check.module_inputs import read_input
from foveal.studies.check.named_module import imported, made_module
from foveal.studies.check.plugin import check_parts, kind_of, named_parts
from foveal.studies.check.run import run_target
from foveal.studies.check.smaller import smaller_config
from foveal.tasks.config import load_config
from foveal.tasks.configure import network_config

SUFFIX, NEAR = ".toml", "did you mean"
READ_BY = {
    "settings": "the model of a preset or network",
    "steps": "a run",
    "input": "a module of your own",
    "expect": "a module of your own",
}
"""The targets that read each option."""


@dataclass(frozen=True)
class CheckOptions:
    """How a target is checked."""

    settings: tuple[str, ...] = ()
    """Settings of the model of a preset."""
    steps: int | None = None
    """The most steps of the training of a run that are replayed at a time; None for the usual numbers."""
    trust_plugin: bool = False
    """Whether the code of plugins that a run keeps may be executed."""
    input: str | None = None
    """What a module of the user's own takes; None to find out."""
    expect: frozenset[str] = frozenset()
    """What the user expects of such a module."""

    def check_read(self, name: str, *read: str) -> None:
        """Check that no option is given but those that a target reads.

        Raises: UserError: another one is.
        """
        for option, target in READ_BY.items():
            if option not in read and getattr(self, option) not in (None, (), frozenset()):
                given = self.settings[0] if option == "settings" else f"--{option}"
                raise UserError(f"{given} is for {target}, which {name} is not; leave it out")


def find_target(name: str, options: CheckOptions, log: Log, progress: ProgressCallback) -> Target:
    """Return what a name stands for. `progress` counts steps.

    Raises: UserError: there is nothing of that name, or an option is not for it.
    """
    if name in preset_names() or name in NETWORKS or name.endswith(SUFFIX):
        return model_target(name, options)
    if (Path(name) / MANIFEST_FILE).exists():
        options.check_read(name, "steps")
        if options.steps is not None and options.steps < 1:
            raise UserError(f"--steps {options.steps}: expected a whole number from 1 on")
        return run_target(name, options.steps, log, progress, options.trust_plugin)
    if not REFERENCE.fullmatch(name) and (source := imported(name)) is not None:
        return own_module_target(name, made_module(name, source), options)
    return plugin_target(name, options)


def own_module_target(name: str, module: nn.Module, options: CheckOptions) -> Target:
    """Return a module of the user's own.

    Raises: UserError: it can't be called, what it takes is unknown, or an option is not for it.
    """
    options.check_read(name, "input", "expect")
    given = None if options.input is None else read_input(options.input)
    return module_target(name, module, given, options.expect)


def model_target(name: str, options: CheckOptions) -> Target:
    """Return the model of a preset, of a TOML file, or of an image network.

    Raises: UserError or ConfigError: a setting does not fit, or an option is not for it.
    """
    options.check_read(name, "settings")
    is_network = name in NETWORKS and name not in preset_names()
    read = network_config if is_network else load_config
    given = read(name, options.settings)
    config, changes = smaller_config(given)
    notes = (f"checked smaller than it is: {', '.join(changes)}",) if changes else ()
    return Target(name, f"a model of {config.task.name}", check_model(config), notes)


def plugin_target(name: str, options: CheckOptions) -> Target:
    """Return the parts of a plugin, or a single one of them. A class that is no part is a module.

    Raises: UserError: there is no such plugin, it has no parts, or an option is not for them.
    """
    reference = REFERENCE.fullmatch(name)
    plugin = load_plugin(reference[1]) if reference else _load(name)
    if reference and (source := plugin.defined(reference[2])) is not None and not kind_of(plugin, source):
        return own_module_target(name, made_module(name, source), options)
    options.check_read(name)
    parts = named_parts(plugin, reference[2]) if reference else plugin.parts
    if not parts:
        classes = "".join(f"; {name}:{each} checks a class" for each in plugin.definitions[:1])
        raise UserError(f"{name}: registers no parts (docs/plugins.md){classes}")
    return Target(name, f"the plugin {plugin.name}", check_parts(parts))


def _load(name: str) -> Plugin:
    """Load a plugin by its file, its folder, or the name of an installed one.

    Raises: UserError: there is no such plugin, or it can't be loaded.
    """
    if Path(name).exists():
        return load_plugin(name)
    installed = [*installed_plugins()]
    for each in installed:
        if name in (each.entry, each.name):
            if loaded_plugin(each.name) is None:
                load_installed_plugin(each)
            loaded = loaded_plugin(each.name)
            assert loaded is not None
            return loaded
    hint = suggest(name, {*preset_names(), *NETWORKS, *(each.entry for each in installed)})
    hint = hint if NEAR in hint else "; foveal models lists the presets"
    raise UserError(f"{name}: no run, preset, file or folder, and no installed plugin of that name{hint}")
