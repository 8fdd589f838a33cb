"""The registry of views. Each view registers itself; plugins have views, too."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from foveal.core.errors import UserError
from foveal.inspection.view import View
from foveal.plugins.registry import Registry, package_modules

ViewT = TypeVar("ViewT", bound=type[View[Any]])
PACKAGES = ("foveal.inspection", "foveal.tasks")
"""The packages with our views."""


def view_modules(*packages: str) -> Iterator[str]:
    """Yield the modules of packages that may have a view: single files, and the file `view` of a folder."""
    for package in packages:
        yield from package_modules(package, "view")


def _make_view(name: str, view: Any) -> View[Any]:
    if not (isinstance(view, type) and issubclass(view, View)):
        raise UserError(f"the view {name}: expected a class below foveal.inspection.view.View")
    made: View[Any] = view()
    made.name = name
    return made


VIEWS: Registry[View[Any]] = Registry("view", lambda: view_modules(*PACKAGES), _make_view)


def register_view(name: str) -> Callable[[ViewT], ViewT]:
    """Return a decorator that registers a view: a class below `foveal.inspection.view.View`.

    Example:

        @foveal.register_view("margins")
        class Margins(View):
            summary = "How sure a run is of its answers."
            Options = MarginsOptions

            def compute(self, run, options, log, progress):
                return Payload(...)

    Raises: UserError: another view has this name, or the class is no view.
    """
    return VIEWS.decorator(name)
