"""Open the folder of a run, and the plugins it was made with. This reads small files, without torch."""

from pathlib import Path

from foveal.config.old_names import UPGRADE_NOTE
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.plugins.stored import open_plugins
from foveal.store.run import RunFolder, open_run
from foveal.ui.console import log as log_to_console


class OwnModuleError(UserError):
    """A run of `foveal.Trainer` has no task."""


def open_logged(path: Path, log: Log = log_to_console, trust_plugin: bool = False) -> RunFolder:
    """Open a run folder with the plugins it was made with, and log if an older version created the run.

    Raises: OwnModuleError: the run has no task.
    Raises: UserError: the path is not a run, is damaged, or code of a plugin would be executed unasked.
    """
    run = open_run(path)
    if run.has_own_module:
        raise OwnModuleError(
            f"{path}: trained by foveal.Trainer, so its model is a module of your own code, without a task: "
            "its script goes on with it, and foveal evaluate scores it"
        )
    if run.is_old:
        log(f"{path}: {UPGRADE_NOTE}")
    open_plugins(path, run.manifest, log, trust_plugin)
    return run
