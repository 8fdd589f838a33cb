"""The weights of a model by name, where ranks may share them."""

from collections.abc import Iterator, Mapping

from torch import Tensor, nn

from foveal.core.stored_tensor import StoredTensor
from foveal.distributed.placement import Placement
from foveal.store.sealed import check_tensors, unique_state_dict


def own_state_dict(model: nn.Module, placement: Placement) -> dict[str, Tensor]:
    """Return the own part of every parameter, and every persistent buffer, in the model's storage."""
    return {name: placement.own_weight(name, tensor) for name, tensor in unique_state_dict(model).items()}


def whole_weights(model: nn.Module, placement: Placement) -> Iterator[tuple[str, Tensor]]:
    """Yield the name and the whole of every parameter and persistent buffer, one after another. All ranks do
    this together."""
    for name, own in own_state_dict(model, placement).items():
        yield name, placement.whole(own, own)


def load_placed_weights(
    model: nn.Module, placement: Placement, tensors: Mapping[str, StoredTensor], name: str
) -> None:
    """Copy the own parts of whole `tensors` into the model. `name` is for the error message.

    Raises: UserError: names, shapes or dtypes do not match exactly.
    """
    parts = own_state_dict(model, placement)
    shapes = {key: own.new_empty(placement.whole_shape(own), device="meta") for key, own in parts.items()}
    check_tensors(shapes, tensors, name)
    for key, own in parts.items():
        own.copy_(placement.read(tensors[key], own))


Held = dict[str, tuple[Tensor, Tensor | None]]
"""Values by name, each with the own part of the weight that it is for; None if it is for no weight."""


def held_weights(model: nn.Module, placement: Placement) -> Held:
    """Return the own part of every parameter, and every persistent buffer."""
    return {name: (own, own) for name, own in own_state_dict(model, placement).items()}
