"""A module of the user's own by its name: `FILE.py:NAME`, or `package.module:NAME`."""

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from foveal.config import suggest
from foveal.core.errors import FAILURES, UserError, describe_failed_import, describe_failure
from foveal.training.module.sources import count_arguments

IMPORTED = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")
"""The name of a module of Python, and of a class or function in it."""


def imported(name: str) -> Callable[..., object] | None:
    """Return the class or function of a name `package.module:NAME`; None if the name has another form.

    Raises: UserError: the import fails, or the module has no such class.
    """
    match = IMPORTED.fullmatch(name)
    if match is None:
        return None
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(match[1])
    except FAILURES as error:
        raise UserError(f"{match[1]}: can't be imported: {describe_failed_import(error)}") from None
    source = getattr(module, match[2], None)
    if not callable(source):
        known = {each for each in vars(module) if not each.startswith("_")}
        raise UserError(f"{name}: {match[1]} has no {match[2]}{suggest(match[2], known)}")
    return source


def made_module(name: str, source: Callable[..., object]) -> nn.Module:
    """Return the module that a class or a function makes.

    Raises: UserError: it needs arguments, fails, or makes no module.
    """
    if count_arguments(source):
        raise UserError(
            f"{name}: needs arguments: name a function without parameters that makes the module, such as "
            f"def small(): return {getattr(source, '__name__', 'MyModule')}(...)"
        )
    torch.manual_seed(0)
    try:
        module = source()
    except FAILURES as error:
        raise UserError(f"{name}: can't be made: {describe_failure(error)}") from None
    if not isinstance(module, nn.Module):
        raise UserError(f"{name}: makes no torch.nn.Module, but {type(module).__name__}")
    return module
