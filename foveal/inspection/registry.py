"""The registry of views. Each view registers itself; plugins have views, too."""

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar

from foveal.core.errors import UserError
from foveal.inspection.view import View
from foveal.plugins.registry import Registry, file_of, package_modules, registering_module

ViewT = TypeVar("ViewT", bound=type[View[Any]])
PACKAGES = ("foveal.inspection", "foveal.tasks")
"""The packages with our views."""


def view_modules(*packages: str) -> Iterator[str]:
    """Yield the modules of packages that may have a view: single files, and the file `view` of a folder."""
    for package in packages:
        yield from package_modules(package, "view")


COMMON_OPTIONS = ("out", "report", "open", "control", "device", "json")
"""The names of options that no view has for itself."""


def _make_view(name: str, view: Any) -> View[Any]:
    if problem := _problem(view):
        raise UserError(f"{file_of(registering_module(view))}: the view {name}: {problem}")
    made: View[Any] = view()
    made.name = name
    return made


def _problem(view: Any) -> str:
    """Return what is wrong with a class of a view; an empty text if nothing is."""
    if not (isinstance(view, type) and issubclass(view, View)):
        return "expected a class below foveal.inspection.view.View"
    if missing := sorted(getattr(view, "__abstractmethods__", ())):
        return f"has no method {missing[0]}"
    if not isinstance(getattr(view, "summary", None), str):
        return "has no summary, a text of one line"
    options = getattr(view, "Options", None)
    if not (isinstance(options, type) and is_dataclass(options)):
        return "Options is a dataclass, with a default for each option"
    for field in fields(options):
        if field.default is MISSING and field.default_factory is MISSING:
            return f"the option {field.name} has no default"
        if field.name in COMMON_OPTIONS:
            return f"the option {field.name} is one of every view; rename it"
    return ""


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
