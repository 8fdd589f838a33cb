"""Layers that several processes split among them (tensor parallelism, Shoeybi et al. 2019), and the streams
between them (Korthikanti et al. 2022)."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from torch import nn

from foveal.core.errors import UserError
from foveal.distributed.tensor_group import SplitModule, StreamModule, StreamOwner, TensorGroup

MENTIONED_SHARE, MENTIONED_LAYERS = 0.1, 3


@dataclass
class SplitWeights:
    """How the ranks of a group hold the weights of a model."""

    axis_of: dict[nn.Parameter, int] = field(default_factory=dict)
    """The axis along which each split weight is to be cut."""
    in_streams: set[nn.Parameter] = field(default_factory=set)
    """The whole weights that compute with a cut stream: their gradient is the sum over the ranks."""


def split(model: nn.Module, group: TensorGroup) -> SplitWeights:
    """Split the modules of a model among the ranks of a group, and cut the streams between them.

    Raises: UserError: a module can't be split by so many, or none can.
    """
    weights = SplitWeights()
    parameters = dict(model.named_parameters(remove_duplicate=False))
    modules = split_modules(model)
    group_of: dict[nn.Module, TensorGroup] = {}
    for owner in model.modules():
        if isinstance(owner, StreamOwner) and _splits_mixers(owner.stack, modules.values()):
            group_of |= dict.fromkeys(_in_stream(owner), group.along_sequence())
    for module, stream in group_of.items():
        if isinstance(module, StreamModule):
            module.stream = stream
    for path, split_module in modules.items():
        try:
            axes = split_module.split_among(group_of.get(model.get_submodule(path), group))
        except ValueError as error:
            raise UserError(f"--tp {group.size}: {path or 'the model'}: {error}") from None
        for name, axis in axes.items():
            weights.axis_of[parameters[f"{path}.{name}" if path else name]] = axis
    if not weights.axis_of:
        raise UserError(
            f"--tp {group.size}: no layer of this model can be split; attention, MLP, SwiGLU, embeddings and "
            "the projection to a vocabulary can"
        )
    of_streams = {weight for module in group_of for weight in module.parameters(recurse=False)}
    weights.in_streams = of_streams - weights.axis_of.keys() - _reading_whole_rows(group_of)
    return weights


def describe_whole(model: nn.Module, split: SplitWeights, processes: int) -> str:
    """Return which layers each process computes whole, if they have more than a tenth of the weights."""
    whole: Counter[str] = Counter()
    counted = {*split.axis_of}
    for module in model.modules():
        for weight in {*module.parameters(recurse=False)} - counted:
            whole[type(module).__name__] += weight.numel()
            counted.add(weight)
    share = whole.total() / sum(weight.numel() for weight in counted)
    if share < MENTIONED_SHARE:
        return ""
    names = ", ".join(name for name, _ in whole.most_common(MENTIONED_LAYERS))
    return (
        f"--tp {processes} splits {1 - share:.0%} of the weights; each process has the others whole: {names}"
    )


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


def _splits_mixers(stack: nn.Module, split: Iterable[SplitModule]) -> bool:
    """Return whether the ranks split all mixers of a stack, between which each position is computed alone."""
    return {getattr(block, "mixer", None) for block in stack.get_submodule("blocks").children()} <= {*split}


def _in_stream(owner: StreamOwner) -> Iterator[nn.Module]:
    """Yield the modules that compute with the stream of a stack."""
    yield from owner.stack.modules()
    for name in owner.in_stream:
        yield from getattr(owner, name).modules()


def _reading_whole_rows(modules: Iterable[nn.Module]) -> set[nn.Parameter]:
    """Return the weights of modules that read all positions, in a stream or not."""
    whole = (module for module in modules if getattr(module, "reads_whole_rows", False))
    return {weight for module in whole for weight in module.parameters()}
