"""The options `--plugin FILE` and `--trust-plugin`, which every command has."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from foveal.core.errors import UserError

PLUGIN, TRUST = "--plugin", "--trust-plugin"
HELP = (
    "`--plugin FILE.py` with any command loads mixers, tasks and other parts from a file or a package; "
    "`--trust-plugin` runs the code that a run keeps of them."
)
NAMED_BY = {
    "mixer": "model.mixers={}",
    "encoder": "model.encoder.kind={}",
    "head": "model.head.kind={}",
    "model": "--model {}",
    "task": "--task {}",
    "data set": "foveal train {}",
    "metric": "task.metrics={}",
    "callback": "training.callbacks={}",
    "view": "foveal inspect RUN {}",
}
"""What names a part on the command line, by its kind."""
_trusted: list[bool] = []


class PluginOptions(NamedTuple):
    """The options of a command line, and its other arguments."""

    arguments: list[str]
    plugins: list[str]
    trust: bool


def take_plugin_options(arguments: Iterable[str]) -> PluginOptions:
    """Take the options out of a command line.

    Raises: UserError: `--plugin` has no value.
    """
    rest, plugins, remaining = list[str](), list[str](), iter(arguments)
    trust = False
    for argument in remaining:
        option, equals, value = argument.partition("=")
        if option == PLUGIN:
            value = value if equals else next(remaining, "")
            if not value or value.startswith("--"):
                raise UserError(f"{PLUGIN}: name a Python file, or the folder of a package")
            plugins.append(value)
        elif argument == TRUST:
            trust = True
        else:
            rest.append(argument)
    return PluginOptions(rest, plugins, trust)


def describe_parts(plugins: Sequence[str]) -> str:
    """Return the names of the parts that plugins register, and how each is given, for the help of a command.

    Raises: UserError: a plugin can't be loaded.
    """
    from foveal.plugins.loading import load_plugin  # a plugin imports torch

    lines: list[str] = []
    for path in plugins:
        for kind, names in load_plugin(path).parts.items():
            lines += [f"    {kind} {name}: {NAMED_BY[kind].format(name)}" for name in names]
    return "\n".join([f"Parts of {', '.join(plugins)}:", "", *(lines or ["    none are registered"])])


@contextmanager
def plugins_of_command(options: PluginOptions) -> Iterator[None]:
    """Return a context for a command, in which the plugins of its options are loaded.

    Raises: UserError: a plugin can't be loaded.
    """
    with trusting(options.trust):
        if options.plugins:
            # A plugin imports torch.
            from foveal.plugins.loading import load_plugin

            for path in options.plugins:
                load_plugin(path)
        yield


@contextmanager
def trusting(trust: bool) -> Iterator[None]:
    """Return a context in which the code that runs keep of plugins may be executed."""
    _trusted.append(trust)
    try:
        yield
    finally:
        _trusted.pop()


def is_trusted() -> bool:
    """Return whether the user allowed to execute the code that runs keep of plugins."""
    return any(_trusted)
