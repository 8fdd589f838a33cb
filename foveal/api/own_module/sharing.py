"""Processes that share the weights of the user's own module (`fsdp=True`)."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy

from torch import nn

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.distributed.world import MakeRanks, Ranks
from foveal.store.run import RunFolder
from foveal.tasks.warm_start import load_initial_weights


def make_ranks(fsdp: bool) -> MakeRanks:
    """Return what makes the world of a process."""
    if not fsdp:
        return Ranks
    # Imported where needed: torch's modules for this take up to a second.
    from foveal.distributed.sharded import ShardedRanks

    return ShardedRanks


def check_sharing(module: nn.Module, log: Log) -> None:
    """Check that processes can share the weights of a module.

    Raises: UserError: they can't.
    """
    from foveal.distributed.sharded import sharded_blocks

    blocks = [*sharded_blocks(module)]
    if not blocks:
        log(
            "fsdp: the module has no nn.ModuleList, whose layers are gathered one after another: all weights "
            "are gathered for the whole step"
        )
    types = {weight.dtype for weight in module.parameters() if weight.requires_grad}
    if len(types) > 1:
        names = ", ".join(sorted(str(each).removeprefix("torch.") for each in types))
        raise UserError(f"fsdp: the trained weights are of {names}: give all the same type")
    block_of = {part: block for block in blocks for part in block.modules()}
    first: dict[nn.Parameter, tuple[str, nn.Module | None]] = {}
    for path, part in module.named_modules():
        for name, weight in part.named_parameters(path, recurse=False):
            other, block = first.setdefault(weight, (name, block_of.get(part)))
            if block is not block_of.get(part):
                raise UserError(
                    f"fsdp: {other} and {name} are the same weight, and are gathered at different times: use "
                    "the weight in one layer of an nn.ModuleList, or outside of all"
                )


def copy_to_share(module: nn.Module) -> nn.Module:
    """Return a copy of a module that has the same weights, until processes share those of the copy."""
    return deepcopy(module, {id(weight): weight for weight in module.parameters()})


@contextmanager
def without_weights(module: nn.Module, shared: nn.Module, run: RunFolder) -> Iterator[None]:
    """Return a context in which a module has no memory for the weights that processes share in a copy of it.
    Afterwards it has its first weights."""
    shapes = {weight: weight.shape for weight in {*module.parameters()} - {*shared.parameters()}}
    for weight in shapes:
        weight.data = weight.new_empty(0)
    try:
        yield
    finally:
        for weight, shape in shapes.items():
            weight.data = weight.new_empty(shape)
        load_initial_weights(run, module)
