"""The registry of views. Each view registers itself, and a walk over packages finds them."""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from foveal.inspection.base import View
from foveal.plugins.registry import Registry, package_modules

ViewT = TypeVar("ViewT", bound=type[View[Any, Any]])
VIEWS: Registry[View[Any, Any]] = Registry("view", adapt=lambda name, view: view())


def register_view(view: ViewT) -> ViewT:
    """Register a view under its name: a decorator of its class.

    Raises: UserError: another view has this name.
    """
    return VIEWS.decorator(view.name)(view)


def find_views(*packages: ModuleType) -> Mapping[str, View[Any, Any]]:
    """Return all views by name in alphabetical order, after importing the modules of `packages`.

    A view is in a module of a package, or in the module `view` of a folder.
    """
    for package in packages:
        for module in package_modules(package.__name__, "view"):
            import_module(module)
    return dict(sorted(VIEWS.items()))
