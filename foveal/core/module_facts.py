"""Facts that modules state about themselves, so that training code names no module class.

Class attributes name parameters or submodules of the module itself:

* `no_decay`: parameters with two or more axes that weight decay leaves alone, because each number belongs to
  one channel or pixel and maps no vector to another;
* `not_hidden`: tables, and maps with one side that is not a hidden vector, which Muon leaves to AdamW;
* `auxiliary`: models trained alongside this model, such as a proxy; freezing does not apply to them.

`keeps_statistics` is True for a norm with running statistics of the batches, `attends_to_memory` for a mixer
whose tap `weights` is over the positions of a memory. `ignores_order` is True for a mixer that does not know
the order of the positions of its memory, or of its row if it reads no memory.

Methods:

* `layer_groups()`: the parameters by their depth (`LayerGroups`);
* `reusable_encoder()`: the encoder that another run can reuse;
* `input_block()`: the part of an encoder of images that reads the pixels;
* `fit_weights(weights)`: weights of a module of the same kind, fitted to the sizes of this one.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

from torch import Tensor, nn

LayerGroups = list[list[nn.Parameter]]
"""Parameters by depth: group 0 is after the last block, group 1 the last block, and so down to the input."""


@runtime_checkable
class HasLayerGroups(Protocol):
    """A module that knows how deep its parameters lie; parameters in no group count as group 0."""

    def layer_groups(self) -> LayerGroups: ...


@runtime_checkable
class HasReusableEncoder(Protocol):
    """A model with an encoder that another run can reuse."""

    def reusable_encoder(self) -> nn.Module: ...


@runtime_checkable
class HasInputBlock(Protocol):
    """An encoder of images that names the block that reads the pixels; None if the encoder has no block."""

    def input_block(self) -> nn.Module | None: ...


@runtime_checkable
class FitsWeights(Protocol):
    """A module whose weights can come from a module of other sizes.

    `fit_weights` raises ValueError if the sizes do not allow it.
    """

    def fit_weights(self, weights: dict[str, Tensor]) -> dict[str, Tensor]: ...


def parameters_without_decay(model: nn.Module) -> set[nn.Parameter]:
    """Return the parameters that modules list in `no_decay`."""
    return set(_stated_parameters(model, "no_decay"))


def parameters_not_hidden(model: nn.Module) -> set[nn.Parameter]:
    """Return the parameters that modules list in `not_hidden`."""
    return set(_stated_parameters(model, "not_hidden"))


def auxiliary_models(model: nn.Module) -> list[nn.Module]:
    """Return the modules that the model lists in `auxiliary`."""
    return [getattr(model, name) for name in getattr(model, "auxiliary", ())]


def norms_with_statistics(model: nn.Module) -> list[nn.Module]:
    """Return the norms that keep statistics of the batches, without those of auxiliary models."""
    elsewhere = {module for other in auxiliary_models(model) for module in other.modules()}
    own = (module for module in model.modules() if module not in elsewhere)
    return [module for module in own if getattr(module, "keeps_statistics", False)]


def reusable_encoder(model: nn.Module) -> nn.Module | None:
    """Return the encoder that another run can reuse, or None if the model has none."""
    return model.reusable_encoder() if isinstance(model, HasReusableEncoder) else None


def input_block(model: nn.Module) -> nn.Module:
    """Return the block of the model's encoder that reads the pixels, or the model if no block does."""
    encoder = reusable_encoder(model)
    block = encoder.input_block() if isinstance(encoder, HasInputBlock) else None
    return model if block is None else block


def fit_weights(model: nn.Module, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of another model, fitted to the sizes of this one; outer modules come first.

    Raises: ValueError: the sizes do not allow it.
    """
    fitted = dict(weights)
    for name, module in model.named_modules():
        if isinstance(module, FitsWeights):
            prefix = f"{name}." if name else ""
            own = {key.removeprefix(prefix): x for key, x in fitted.items() if key.startswith(prefix)}
            fitted |= {prefix + key: x for key, x in module.fit_weights(own).items()}
    return fitted


def layer_groups(model: nn.Module) -> LayerGroups:
    """Return the parameters of a model grouped by depth; empty if the model does not define
    `layer_groups`."""
    return model.layer_groups() if isinstance(model, HasLayerGroups) else []


def stack_layer_groups(
    module: nn.Module,
    blocks: Iterable[nn.Module],
    after: Iterable[nn.Module] = (),
    inputs: Iterable[nn.Module] = (),
) -> LayerGroups:
    """Return the layer groups of a module that runs `blocks` in order.

    `after` are the modules after the last block. `inputs` are modules whose outputs the blocks read; their
    own groups lie below the blocks. All other parameters come before the first block.
    """
    ordered, readers = list(blocks), list(inputs)
    groups = [_parameters(after), *(list(block.parameters()) for block in reversed(ordered))]
    elsewhere = {*_parameters(after), *_parameters(ordered), *_parameters(readers)}
    groups.append([weight for weight in module.parameters() if weight not in elsewhere])
    below = merge_layer_groups(*(layer_groups(reader) for reader in readers))
    return merge_layer_groups(groups, [[] for _ in ordered] + below)


def merge_layer_groups(*parts: LayerGroups) -> LayerGroups:
    """Merge the groups of several parts whose last layers have the same depth."""
    merged: LayerGroups = [[] for _ in range(max(map(len, parts), default=0))]
    for part in parts:
        for depth, weights in enumerate(part):
            merged[depth] += weights
    return merged


def _parameters(modules: Iterable[nn.Module]) -> list[nn.Parameter]:
    return [weight for module in modules for weight in module.parameters()]


def _stated_parameters(model: nn.Module, fact: str) -> Iterator[nn.Parameter]:
    for module in model.modules():
        for name in getattr(module, fact, ()):
            part = getattr(module, name)
            if isinstance(part, nn.Module):
                yield from part.parameters()
            elif part is not None:
                yield part
