"""Layers that several processes split among them (tensor parallelism, Shoeybi et al. 2019)."""

from torch import nn

from foveal.core.errors import UserError
from foveal.distributed.tensor_group import SplitModule, TensorGroup


def split(model: nn.Module, group: TensorGroup) -> dict[nn.Parameter, int]:
    """Split the modules of a model among the ranks of a group. Return the axis along which each weight is to
    be cut.

    Raises: UserError: a module can't be split by so many, or none can.
    """
    axis_of = dict[nn.Parameter, int]()
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for path, module in split_modules(model).items():
        try:
            axes = module.split_among(group)
        except ValueError as error:
            raise UserError(f"--tp {group.size}: {path or 'the model'}: {error}") from None
        for name, axis in axes.items():
            axis_of[parameters[f"{path}.{name}" if path else name]] = axis
    if not axis_of:
        raise UserError(
            f"--tp {group.size}: no layer of this model can be split; attention, MLP, SwiGLU, embeddings and "
            "the projection to a vocabulary can"
        )
    return axis_of


def split_modules(model: nn.Module) -> dict[str, SplitModule]:
    """Return the modules that can be split, by path: those whose weights no other module reads whole."""
    modules = {path: module for path, module in model.named_modules() if isinstance(module, SplitModule)}
    below = {id(one) for module in modules.values() for one in module.modules()}  # type: ignore[attr-defined]
    read_whole = {
        id(weight)
        for module in model.modules()
        if id(module) not in below
        for weight in module.parameters(recurse=False)
    }
    return {
        path: module
        for path, module in modules.items()
        if not any(id(weight) in read_whole for weight in module.parameters(recurse=False))  # type: ignore[attr-defined]
    }
