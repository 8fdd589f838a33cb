"""Registries of parts by name: mixers, tasks, data sets ... A plugin's part is one among ours."""

import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from threading import RLock
from typing import Any, Generic, TypeVar

from foveal.config import ConfigError, suggest
from foveal.core.errors import UserError

T = TypeVar("T")
Registered = TypeVar("Registered")
PACKAGE = __package__.partition(".")[0]
NAME = re.compile(r"\w[\w-]*")
"""The names that a part may have: `,`, `+` and `.` stand between names in settings."""


@dataclass(frozen=True)
class Entry(Generic[T]):
    """A registered part."""

    part: T
    source: object
    """What was registered: the part itself, or the class or function that the part was made of."""
    module: str
    """The module that registered the part."""


class Registry(Generic[T]):
    """The parts of one kind by name: ours, and those of plugins.

    Our modules are imported at the first look-up. Plugins are searched for when a name is not among ours, and
    when all names are wanted.
    """

    def __init__(
        self,
        kind: str,
        own_modules: Callable[[], Iterable[str]] = tuple,
        adapt: Callable[[str, Any], T] | None = None,
        reserved: Collection[str] = (),
    ):
        """Make an empty registry.

        `kind` is the word for a part in messages. `own_modules` names our modules with parts. `adapt` makes
        the part of the registered object. The sections of parts must not be in `reserved`.
        """
        self.kind = kind
        self._own_modules, self._adapt, self._reserved = own_modules, adapt, reserved
        self._entries: dict[str, Entry[T]] = {}
        self._has_own = False
        self._importing = RLock()
        REGISTRIES[kind] = self

    def add(
        self, name: str, source: object, module: str = "", adapt: Callable[[str, Any], T] | None = None
    ) -> T:
        """Register a part, and return the part.

        `module` is that of the registered object, if not given. `adapt` makes the part of this object.

        A class that is defined again, as in the cell of a notebook, takes the place of the earlier one.

        Raises: UserError: the name is not allowed, or is taken.
        """
        module = module or registering_module(source)
        if not is_ours(module):
            self._import_own()
            self._check_name(name, module)
        for other, entry in self._entries.items():
            again = other == name and entry.module == module and is_new_version(source, entry.source)
            if section_name(other) == section_name(name) and not again:
                raise UserError(self._conflict(name, entry.module, module))
        adapt = adapt or self._adapt
        part: Any = source if adapt is None else adapt(name, source)
        self._entries[name] = Entry(part, source, module)
        return self._entries[name].part

    def decorator(
        self, name: str, adapt: Callable[[str, Any], T] | None = None
    ) -> Callable[[Registered], Registered]:
        """Return a decorator that registers a class or a function under a name, and returns it unchanged.

        Raises: UserError: the name is no text.
        """
        if not isinstance(name, str):
            given = getattr(name, "__name__", name)
            raise UserError(f'{given}: a {self.kind} needs a name: @foveal.register_{self.kind}("NAME")')

        def register(source: Registered) -> Registered:
            self.add(name, source, adapt=adapt)
            return source

        return register

    def __contains__(self, name: object) -> bool:
        self._import_own()
        if isinstance(name, str) and name not in self._entries:
            _search_plugins(self, name)
        return name in self._entries

    def __getitem__(self, name: str) -> T:
        if name not in self:
            raise KeyError(name)
        return self._entries[name].part

    def __iter__(self) -> Iterator[str]:
        """Yield all names, in the order of registration."""
        self._import_own()
        _search_plugins(self)
        return iter([*self._entries])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def items(self) -> list[tuple[str, T]]:
        """Return all names with their parts, in the order of registration."""
        return [(name, self[name]) for name in self]

    def find(self, name: str, setting: str) -> T:
        """Return the part that a setting names.

        Raises: ConfigError: there is no such part; the message has the nearest name.
        """
        if name not in self:
            from foveal.plugins.loading import unregistered_classes  # which imports this module

            known = [*self, *unregistered_classes()]
            raise ConfigError(f"{setting}: unknown {self.kind} '{name}'{suggest(name, known)}")
        return self[name]

    def has_section(self, section: str) -> bool:
        """Return whether a part has a section of this name in the config."""
        self._import_own()
        known = any(section_name(name) == section for name in self._entries)
        return known or any(section_name(name) == section for name in self)

    def is_own(self, name: str) -> bool:
        """Return whether a part is one of ours."""
        return is_ours(self.module_of(name))

    def module_of(self, name: str) -> str:
        """Return the module that registered a part."""
        return self._entries[name].module

    def name_of(self, source: object) -> str:
        """Return the name of a registered object; empty if the object is not registered."""
        return next((name for name, entry in self._entries.items() if entry.source is source), "")

    def names_from(self, modules: Callable[[str], bool]) -> list[str]:
        """Return the names of the parts that some modules registered."""
        return [name for name, entry in self._entries.items() if modules(entry.module)]

    def modules(self) -> set[str]:
        """Return the modules that registered parts."""
        return {entry.module for entry in self._entries.values()}

    def snapshot(self) -> dict[str, Entry[T]]:
        """Return the parts that are registered now, for `restore`."""
        return dict(self._entries)

    def restore(self, entries: Mapping[str, Entry[T]]) -> None:
        """Go back to the parts of a snapshot. Parts of ours that were registered since then stay."""
        own = {name: entry for name, entry in self._entries.items() if is_ours(entry.module)}
        self._entries = {**entries, **own}

    def forget(self, modules: Callable[[str], bool]) -> None:
        """Take away the parts of some modules."""
        self._entries = {name: e for name, e in self._entries.items() if not modules(e.module)}

    def _import_own(self) -> None:
        """Import our modules, so that each registers its parts. Other threads wait for the end of it."""
        with self._importing:
            if self._has_own:
                return
            self._has_own = True  # the modules may look up names of the same registry
            for module in self._own_modules():
                importlib.import_module(module)
                self.imported(module)

    def imported(self, module: str) -> None:
        """Register the parts of one of our modules that need no decorator."""

    def _check_name(self, name: str, module: str) -> None:
        if not NAME.fullmatch(name):
            raise UserError(
                f"{file_of(module)}: the {self.kind} '{name}': a name has letters, digits, - and _ only"
            )
        if section_name(name) in self._reserved:
            raise UserError(
                f"{file_of(module)}: the {self.kind} {name}: its settings would be those of another section; "
                "choose another name"
            )

    def _conflict(self, name: str, first: str, second: str) -> str:
        if first == second:
            return f"{file_of(second)}: registers the {self.kind} {name} twice; rename one of them"
        if is_ours(first):
            return f"{file_of(second)}: the {self.kind} {name} is one of Foveal's own; choose another name"
        return (
            f"two plugins register the {self.kind} {name}: {file_of(first)} and {file_of(second)}; rename one"
        )


HOMES = {
    "mixer": "foveal.layers.mixers.registry",
    "encoder": "foveal.models.encoder_registry",
    "model": "foveal.models.network_registry",
    "head": "foveal.heads.registry",
    "task": "foveal.tasks.registry",
    "data set": "foveal.data.datasets.dataset_registry",
    "metric": "foveal.metrics.registry",
    "callback": "foveal.training.callback_registry",
    "view": "foveal.inspection.registry",
}
"""The modules with the registries, by the kind of their parts."""
REGISTRIES: dict[str, Registry[Any]] = {}
"""The registries whose modules were imported, by kind."""
_loading: list[str] = []
"""The modules of plugins that are being imported, the innermost last."""


def registry_of(kind: str) -> Registry[Any]:
    """Return the registry of a kind of part."""
    importlib.import_module(HOMES[kind])
    return REGISTRIES[kind]


def section_name(name: str) -> str:
    """Return the name of a part's section in the config."""
    return name.replace("-", "_")


def is_ours(module: str) -> bool:
    """Return whether a module belongs to this package."""
    return module.partition(".")[0] == PACKAGE


def file_of(module: str) -> str:
    """Return the file of a module, for messages."""
    return str(getattr(sys.modules.get(module), "__file__", None) or module)


def is_new_version(source: object, earlier: object) -> bool:
    """Return whether a class or a function is defined again by the same code."""
    name = getattr(source, "__qualname__", "")
    return bool(name) and name == getattr(earlier, "__qualname__", "")


def registering_module(source: object) -> str:
    """Return the module that registers an object: that of the class or function, or the plugin's that is
    being loaded."""
    module = str(getattr(source, "__module__", type(source).__module__))
    loading = _loading[-1] if _loading else ""
    inside = module == loading or module.startswith(f"{loading.partition('.')[0]}.")
    return module if not loading or inside or is_ours(module) else loading


@contextmanager
def loading(module: str) -> Iterator[None]:
    """Return a context in which the module of a plugin is imported.

    If that fails, the registries are as before.
    """
    before = {kind: registry.snapshot() for kind, registry in REGISTRIES.items()}
    _loading.append(module)
    try:
        yield
    except BaseException:
        for kind, registry in REGISTRIES.items():
            registry.restore(before.get(kind, {}))
        raise
    finally:
        _loading.pop()


def package_modules(package: str, folder_module: str = "") -> Iterator[str]:
    """Yield the names of a package's modules, and of the module `folder_module` of its folders."""
    path = importlib.import_module(package).__path__
    for module in pkgutil.iter_modules(path, f"{package}."):
        name = f"{module.name}.{folder_module}" if module.ispkg else module.name
        if not module.ispkg or (folder_module and find_spec(name) is not None):
            yield name


def _search_plugins(registry: Registry[Any], name: str = "") -> None:
    """Load the installed plugins, and register a class that a loaded plugin defines under its own name."""
    # The loader restores registries after a failure, so it imports this module.
    from foveal.plugins.installed import load_installed_plugins
    from foveal.plugins.loading import source_in_plugins

    load_installed_plugins()
    if name not in registry._entries and (source := source_in_plugins(name)) is not None:
        registry.add(name, source)
