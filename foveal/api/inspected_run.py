"""Open a run for views: of a task, or of the user's own module."""

from pathlib import Path

import torch
from torch import nn

from foveal.api.own_module.evaluation import load_module_run
from foveal.api.own_module.session import ModuleSession, ModuleTask
from foveal.core.errors import UserError
from foveal.inspection.run_protocols import InspectedRun
from foveal.plugins.options import is_trusted
from foveal.store.run import RunFolder, open_run
from foveal.tasks.cached_session import cached
from foveal.tasks.session import load


def open_inspected(path: str | Path, device: torch.device) -> InspectedRun:
    """Open a run, whose own data are read once.

    A run of the user's own module opens without its code, too: some views need only the run's folder.

    Raises: UserError: the path is not a run, is damaged, or has no weights yet, or code of a plugin would be
        executed unasked.
    """
    folder = open_run(Path(path))
    return _open_module(folder, device) if folder.has_own_module else cached(load(path, device))


def _open_module(folder: RunFolder, device: torch.device) -> InspectedRun:
    try:
        run, _ = load_module_run(folder, device, is_trusted())
    except UserError as error:
        missing = str(error).removeprefix(f"{folder.path}: ")
        return ModuleSession(folder, ModuleTask(folder.config, nn.Module(), None, None, missing))
    return run.inspected
