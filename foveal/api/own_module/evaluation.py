"""`foveal evaluate RUN` of a run of the user's own module, whose code is imported again."""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from foveal.api.own_module.code import ModuleFacts, import_code, module_facts
from foveal.api.own_module.run import ModuleRun, load_kept_weights
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.store.run import RunFolder
from foveal.training.module.batches import BatchOptions
from foveal.training.module.sources import held_out_batches
from foveal.ui.console import log as console_log

RELATIVE_TOLERANCE = 1e-3
"""The loss on the run's own validation data may differ that much from the training's, on another machine."""


class ModuleEvaluation(NamedTuple):
    """The means of the loss and the metrics over the validation batches of a run, and the step of the
    weights."""

    means: dict[str, float]
    step: int


def evaluate_module_run(folder: RunFolder, device: torch.device, trust: bool, log: Log) -> ModuleEvaluation:
    """Import the module, objective and validation batches of a run, and evaluate the weights that it keeps.

    Raises: UserError: the user does not trust the code, or it can't be imported or does not fit.
    """
    if not (valid := module_facts(folder).valid).name:
        raise UserError(f"{folder.path}: its valid can't be imported: {valid.reason}")
    run, kept = load_module_run(folder, device, trust)
    with _on_the_path(module_facts(folder)):
        means = run.evaluate().scores
    before = kept["loss"]
    if before is not None and not math.isclose(means["loss"], before, rel_tol=RELATIVE_TOLERANCE):
        log(
            f"the loss was {before:.4f} in the training: the code or the data have changed since, or the "
            "module was made with other arguments"
        )
    return ModuleEvaluation(means, kept["step"])


def load_module_run(folder: RunFolder, device: torch.device, trust: bool) -> tuple[ModuleRun, dict[str, Any]]:
    """Import module and objective of a run, and its validation batches if they can be imported.

    Return the run, and the facts about the weights that it keeps.

    Raises: UserError: the user does not trust the code, or it can't be imported or does not fit.
    """
    facts = module_facts(folder)
    parts = {"module": facts.module, "objective": facts.objective}
    for name, part in parts.items():
        if not part.name:
            raise UserError(f"{folder.path}: its {name} can't be imported: {part.reason}")
    if facts.valid.name:
        parts["valid"] = facts.valid
    if not trust:
        names = ", ".join(part.name for part in parts.values())
        raise UserError(f"{folder.path}: this runs code, {names}: give --trust-plugin to run it")
    with _on_the_path(facts):
        code = {name: import_code(part, name, folder.path) for name, part in parts.items()}
        module = _make(code["module"], facts, folder.path)
        kept = _load(folder, module.to(device), facts)
        options = BatchOptions(device, folder.config.training.seed, console_log)
        valid = held_out_batches(code["valid"], options) if "valid" in code else None
    return ModuleRun(folder, module, code["objective"], valid), kept


def _make(make: object, facts: ModuleFacts, run: Path) -> nn.Module:
    """Return the module that the imported code makes.

    Raises: UserError: it makes something else.
    """
    module = make() if callable(make) else make
    if not isinstance(module, nn.Module):
        raise UserError(f"{run}: {facts.module.name}() is no torch.nn.Module any more: restore that code")
    return module


def _load(folder: RunFolder, module: nn.Module, facts: ModuleFacts) -> dict[str, Any]:
    """Fill a module with the kept weights of a run. Return the facts about them.

    Raises: UserError: they do not fit.
    """
    try:
        return load_kept_weights(folder, module)
    except UserError as error:
        raise UserError(
            f"{error}: {facts.module.name}() makes another module than was trained; give foveal.Trainer a "
            "function without parameters that makes it"
        ) from None


@contextmanager
def _on_the_path(facts: ModuleFacts) -> Iterator[None]:
    """Return a context in which modules are imported from the working folder, and from where they were."""
    added = [folder for folder in (str(Path.cwd()), *facts.folders) if folder not in sys.path]
    sys.path += added
    try:
        yield
    finally:
        for folder in added:
            sys.path.remove(folder)
