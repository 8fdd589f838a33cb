"""The loggers by their names: each is a file of this package with a class below `Logger`."""

import pkgutil
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from foveal.config import suggest
from foveal.core.callbacks import Callback
from foveal.core.errors import UserError
from foveal.training import loggers
from foveal.training.callback_registry import CALLBACKS
from foveal.training.loggers.base import STATE_FOLDER, Logger


def logger_names() -> list[str]:
    """Return the names of all loggers."""
    names = (module.name for module in pkgutil.iter_modules(loggers.__path__))
    return sorted(name for name in names if name not in ("base", "registry"))


def logger_class(name: str) -> type[Logger]:
    """Return the logger with a name.

    Raises: UserError: there is no such logger, or its package is not installed.
    """
    if name in CALLBACKS:
        raise UserError(f"--log {name}: a callback, not a logger: training.callbacks={name}")
    if name not in logger_names():
        raise UserError(f"--log {name}: no such logger{suggest(name, logger_names())}")
    module = import_module(f"{loggers.__name__}.{name}")
    logger: type[Logger] = next(
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Logger) and value.__module__ == module.__name__
    )
    logger.check_installed()
    return logger


def check_loggers(names: Iterable[str]) -> None:
    """Check the names of loggers before a training is prepared.

    Raises: UserError: there is no such logger, or its package is not installed.
    """
    for name in names:
        logger_class(name)


def make_loggers(names: Iterable[str], run: Path) -> list[Callback]:
    """Return the loggers of a run: those that it had before, and those that are named.

    Raises: UserError: there is no such logger, or its package is not installed.
    """
    folder = run / STATE_FOLDER
    before = sorted(path.stem for path in folder.glob("*.json")) if folder.is_dir() else []
    try:
        made = [logger_class(name)(run) for name in before]
    except UserError as error:
        raise UserError(f"{run}: {error}; or remove its folder {folder} to go on without") from None
    return [*made, *(logger_class(name)(run) for name in dict.fromkeys(names) if name not in before)]
