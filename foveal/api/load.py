"""`foveal.load`: opens the folder of a run."""

from pathlib import Path

from foveal.api.errors import plain_errors
from foveal.api.own_module.evaluation import load_module_run
from foveal.api.run import Run
from foveal.core.runtime import resolve_device
from foveal.store.run import open_run
from foveal.tasks.open_logged import OwnModuleError


@plain_errors
def load(path: str | Path, device: str = "auto", *, trust_plugin: bool = False) -> Run:
    """Open a run folder, and read its model.

    `trust_plugin` allows to execute the code of plugins that the run keeps. A run of `foveal.Trainer` needs
    it, too: the code that made its module, objective and validation batches is imported.

    Raises: UserError: the path is not a run, is damaged, has no weights yet, or needs code that is not
        trusted or can't be imported.
    """
    run = Run(path, device, trust_plugin)
    try:
        _ = run.session
    except OwnModuleError:
        return load_module_run(open_run(path), resolve_device(device), trust_plugin)[0]
    return run
