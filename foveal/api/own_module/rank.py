"""A rank that `foveal.Trainer(ranks=N)` starts."""

import sysconfig
import traceback
from pathlib import Path

import torch

import foveal
from foveal.api.own_module.trainer import Trainer
from foveal.core.errors import RunFailed, UserError

NOT_OF_THE_USER = [
    Path(foveal.__file__).parent,
    *(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")),
]
"""Folders of code that is not the user's."""


def train(file: str) -> None:
    """Train as this rank, by the arguments of a Trainer in a file.

    Raises: UserError: the arguments can't be read here, or can't be used.
    Raises: RunFailed: the training failed.
    Raises: Interrupted: a signal came.
    """
    try:
        # Tensors stay in the file: all ranks have the same pages in memory, until they write to them.
        arguments = torch.load(file, weights_only=False, mmap=True)
    except Exception as error:  # whatever the code of a user raises
        raise UserError(
            f"ranks=: another process can't read what foveal.Trainer is given ({type(error).__name__}: "
            f"{error}): define it in the script itself, or in a module that can be imported"
        ) from error
    try:
        Trainer(**arguments).run()
    except (UserError, RunFailed):
        raise
    except Exception as error:  # of the user's objective or batches
        raise RunFailed(_describe(error)) from error


def _describe(error: Exception) -> str:
    """Return an error in one line, with the innermost place in the user's code that it went through."""
    problem = f"{type(error).__name__}: {error}".removesuffix(": ")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_own(frame.filename)]
    place = ""
    if frames:
        name, file, line = frames[-1].name, frames[-1].filename, frames[-1].lineno
        place = f", in {name}, line {line}{'' if file.startswith('<') else f' of {file}'}"
    return f"{problem}{place} (without ranks= you see the whole of it)"


def _is_own(file: str) -> bool:
    """Return whether a file is the user's."""
    return not file.startswith("<frozen") and not any(
        Path(file).is_relative_to(folder) for folder in NOT_OF_THE_USER
    )
