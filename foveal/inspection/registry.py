"""The registry of views. Each view registers itself, and a walk over packages finds them."""

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, TypeVar

from foveal.inspection.base import View

ViewT = TypeVar("ViewT", bound=type[View[Any, Any]])
_views: dict[str, View[Any, Any]] = {}


def register_view(view: ViewT) -> ViewT:
    """Register a view under its name: a decorator of its class.

    Raises: ValueError: another view has this name.
    """
    if view.name in _views:
        raise ValueError(f"there are two views of the name {view.name}")
    _views[view.name] = view()
    return view


def find_views(*packages: ModuleType) -> Mapping[str, View[Any, Any]]:
    """Return all views by name in alphabetical order, after importing the modules of `packages`.

    A view is in a module of a package, or in the module `view` of a folder.
    """
    for package in packages:
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            name = f"{module.name}.view" if module.ispkg else module.name
            if not module.ispkg or find_spec(name) is not None:
                import_module(name)
    return dict(sorted(_views.items()))
