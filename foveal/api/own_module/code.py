"""What run.json says of a run that trained the user's own module: where its code can be imported from."""

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from foveal.core.errors import FAILURES, UserError, describe_failed_import
from foveal.store.run import MODULE_KEY, RunFolder


class CodeReference(BaseModel):
    """A function or class: `name` is `package.module:qualname` if it can be imported, else empty.

    Then `reason` says why it can't.
    """

    model_config = ConfigDict(strict=True, extra="ignore")

    name: str = ""
    reason: str = ""


class ModuleFacts(BaseModel):
    """The code of a run of the user's own module."""

    model_config = ConfigDict(strict=True, extra="ignore")

    class_name: str
    module: CodeReference
    """What makes the module when it is called without arguments."""
    objective: CodeReference
    valid: CodeReference
    """What makes the validation batches when it is called without arguments."""
    folders: list[str]
    """The folders that are searched for this code, beside those of Python."""


def reference(value: Any) -> CodeReference:
    """Return how to import a function or class in another process."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not module or not name:
        return CodeReference(reason=f"a {type(value).__name__} has no name that can be imported")
    if module == "__main__" or module not in sys.modules:
        return CodeReference(
            reason=f"{name} is in the script itself: move it to a module that the script imports"
        )
    if "<" in name:
        return CodeReference(reason=f"{name} is made inside a function: define it at the top of its module")
    if _look_up(sys.modules[module], name) is not value:
        return CodeReference(
            reason=f"{module}:{name} is something else: give it the name that it is defined by"
        )
    return CodeReference(name=f"{module}:{name}")


def class_reference(value: type) -> CodeReference:
    """Return how to import a class that is to be called without arguments."""
    needed = [
        parameter.name
        for parameter in inspect.signature(value).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if value.__module__.partition(".")[0] == "torch":
        return CodeReference(
            reason=f"{value.__name__} is made of parts: give foveal.Trainer a function that makes the module"
        )
    if needed:
        return CodeReference(
            reason=f"{value.__name__} needs arguments ({', '.join(needed)}): give foveal.Trainer a function "
            "that makes the module"
        )
    return reference(value)


def folder_of(code: CodeReference) -> str | None:
    """Return the folder from which the code was imported; None for installed code, or for none."""
    module = sys.modules.get(code.name.partition(":")[0])
    file = getattr(module, "__file__", None)
    if module is None or file is None:
        return None
    path = Path(file).absolute()
    levels = module.__name__.count(".") + (path.name == "__init__.py")
    folder = path.parents[levels]
    return None if folder.name in ("site-packages", "dist-packages") else str(folder)


def import_code(code: CodeReference, what: str, run: Path) -> Callable[..., Any]:
    """Import a function or class. The caller has asked whether the code is to be trusted.

    Raises: UserError: the code can't be imported.
    """
    module, _, name = code.name.partition(":")
    try:
        value = _look_up(import_module(module), name)
    except FAILURES as error:
        raise UserError(
            f"{run}: its {what} {code.name} can't be imported ({describe_failed_import(error)}): run the "
            "command in the folder of that code"
        ) from error
    if not callable(value):
        raise UserError(f"{run}: {code.name}, its {what}, is not there any more: restore that code")
    function: Callable[..., Any] = value
    return function


def module_facts(run: RunFolder) -> ModuleFacts:
    """Return the facts about the code of a run.

    Raises: UserError: they are not those of such a run.
    """
    try:
        return ModuleFacts.model_validate(run.manifest["data"][MODULE_KEY])
    except ValidationError as error:
        field = ".".join(map(str, (MODULE_KEY, *error.errors()[0]["loc"])))
        raise UserError(f"{run.path / 'run.json'}: data.{field} is not that of a run; restore it") from None


def _look_up(value: Any, name: str) -> Any:
    """Return what a module has under a qualified name; None if there is nothing."""
    for part in name.split("."):
        value = getattr(value, part, None)
    return value
