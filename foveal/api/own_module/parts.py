"""The user's own module: checked, made, placed on a device, and how to import its code elsewhere."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from foveal.api.own_module.code import CodeReference, ModuleFacts, class_reference, folder_of, reference
from foveal.core.errors import UserError
from foveal.core.runtime import resolve_device, seed_everything
from foveal.training.module.objective import UserObjective
from foveal.training.module.sources import count_arguments

Module = nn.Module | Callable[[], nn.Module]
"""A module, or a function without parameters that makes it."""


def make_module(module: Module, seed: int) -> nn.Module:
    """Return the module, which a function makes with random numbers that depend on the seed.

    Raises: UserError: there is no module, or one that can't be trained.
    """
    if not isinstance(module, nn.Module) and callable(module):
        if count_arguments(module):
            raise UserError(
                "module: a function or class with parameters; give a module, or lambda: MyModule(...)"
            )
        seed_everything(seed, "weights")
        module = module()
    if not isinstance(module, nn.Module):
        raise UserError(
            f"module: expected a torch.nn.Module or a function that makes one, not {type(module).__name__}"
        )
    name, parameters = type(module).__name__, [*module.parameters()]
    if any(map(is_lazy, parameters)):
        raise UserError(f"module: {name} has lazy layers: call it once on a batch before foveal.Trainer")
    if not any(weight.requires_grad for weight in parameters):
        raise UserError(f"module: {name} has no weight with requires_grad, so nothing to train")
    return module


def check_objective(objective: Any) -> None:
    """Check that the objective is a function.

    Raises: UserError: it is something else.
    """
    if not callable(objective) or isinstance(objective, nn.Module):
        kind = type(objective).__name__
        raise UserError(
            f"objective: expected a function of (module, batch), not {kind}; such as "
            "lambda module, batch: criterion(module(batch[0]), batch[1])"
        )


def module_code(given: Module, module: nn.Module, objective: UserObjective, valid: Any) -> ModuleFacts:
    """Return how to import the user's code in another process."""
    maker = class_reference(type(given)) if isinstance(given, nn.Module) else reference(given)
    held_out = (
        reference(valid)
        if inspect.isfunction(valid)
        else CodeReference(reason="valid is no function that makes the batches")
    )
    loss = reference(objective)
    folders = [folder_of(code) for code in (maker, loss, held_out) if code.name]
    return ModuleFacts(
        class_name=type(module).__name__,
        module=maker,
        objective=loss,
        valid=held_out,
        folders=[*dict.fromkeys(filter(None, folders))],
    )


def device_of(module: nn.Module, name: str) -> torch.device:
    """Return the device to train on. `auto` leaves a module that is not on the CPU where it is."""
    own = next(module.parameters()).device
    return own if name == "auto" and own.type != "cpu" else resolve_device(name)
