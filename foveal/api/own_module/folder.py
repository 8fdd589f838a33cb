"""The run of a training of the user's own module: created, or opened again to go on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from foveal.api.own_module.code import ModuleFacts
from foveal.api.own_module.config import BUDGET, module_config_to_toml, setting_value
from foveal.api.own_module.cost import check_length
from foveal.api.own_module.session import LOG_UNITS
from foveal.config import Config
from foveal.core.errors import UserError
from foveal.core.rank_device import name_for_run
from foveal.store.run import MODULE_KEY, RunFolder, create_run, open_run
from foveal.store.sealed import seal_tensors, unique_state_dict
from foveal.tasks.warm_start import INITIAL_WEIGHTS_FILE, load_initial_weights
from foveal.training.extension import extend_budget
from foveal.training.plan import parse_budget
from foveal.training.protocols import Batches
from foveal.ui.console import log


def create_module_run(
    path: Path, config: Config, module: nn.Module, code: ModuleFacts, device: torch.device
) -> RunFolder:
    """Create the run, with the first weights of the module.

    Raises: UserError: the folder can't be created.
    """
    data = {
        **{"data": None, "valid": None, "test": None, "preset": "", "device": name_for_run(device)},
        **{"facts": {"parts": {}}, MODULE_KEY: code.model_dump()},
    }
    start = seal_tensors(unique_state_dict(module), {"which": "start"})
    return create_run(
        path,
        config,
        module_config_to_toml(config),
        {INITIAL_WEIGHTS_FILE: start},
        data,
        log_units=LOG_UNITS,
    )


def reopen_module_run(
    path: Path, written: Mapping[str, Any], config: Config, module: nn.Module, batches: Batches
) -> RunFolder:
    """Open an existing run, whose training goes on. The module gets its first weights.

    `written` are the settings that the user gave, of which the budget may be another than before.

    Raises: UserError: the folder is another run, or the run has other settings.
    """
    folder = open_run(path)
    _check_same_settings(folder, written, config)
    load_initial_weights(folder, module)
    budget = folder.read_plans().budget or folder.config.training.budget
    if parse_budget(written[BUDGET]) != parse_budget(budget):
        check_length(written[BUDGET], batches)
        extend_budget(folder, written[BUDGET], batches.per_epoch, log)
    return folder


def _check_same_settings(run: RunFolder, written: Mapping[str, Any], config: Config) -> None:
    """Check that a run goes on with the settings that it was made with. The budget may be another.

    Raises: UserError: it was made with others, or is another kind of run.
    """
    if not run.has_own_module:
        raise UserError(f"{run.path}: not a run of foveal.Trainer: choose another run=")
    for key, value in written.items():
        if key == BUDGET:
            continue
        before, now = setting_value(run.config, key), setting_value(config, key)
        if before != now:
            raise UserError(f"{run.path}: made with {key}={before}, not {value}: choose another run=")
