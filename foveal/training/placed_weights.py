"""The weights of a model by name, where ranks may share them."""

from torch import Tensor, nn

from foveal.distributed.placement import Placement
from foveal.store.sealed import check_tensors, unique_state_dict


def own_state_dict(model: nn.Module, placement: Placement) -> dict[str, Tensor]:
    """Return the own part of every parameter, and every persistent buffer, in the model's storage."""
    return {name: placement.own_weight(name, tensor) for name, tensor in unique_state_dict(model).items()}


def whole_state_dict(model: nn.Module, placement: Placement) -> dict[str, Tensor]:
    """Return every parameter and persistent buffer, whole. All ranks call this together."""
    return {name: placement.whole(own, own) for name, own in own_state_dict(model, placement).items()}


def load_placed_weights(
    model: nn.Module, placement: Placement, tensors: dict[str, Tensor], name: str
) -> None:
    """Copy whole `tensors` into the model. `name` is for the error message.

    Raises: UserError: names, shapes or dtypes do not match exactly.
    """
    parts = own_state_dict(model, placement)
    shapes = {key: own.new_empty(placement.whole_shape(own), device="meta") for key, own in parts.items()}
    check_tensors(shapes, tensors, name)
    for key, own in parts.items():
        own.copy_(placement.own(tensors[key], own))
