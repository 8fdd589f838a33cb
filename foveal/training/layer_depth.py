"""The depth of each parameter: the number of layers between the parameter and the head."""

from torch import nn

from foveal.core.module_facts import layer_groups


def layer_depths(model: nn.Module) -> dict[str, int]:
    """Return the depth of each parameter by its name.

    The depth is 0 in the head and in a norm after the last block, and 1 in the last block (of the encoder, if
    there is an encoder). It grows by one with each earlier block. Parameters before all blocks are one deeper
    than the first block.
    """
    depth_of = {weight: depth for depth, group in enumerate(layer_groups(model)) for weight in group}
    return {name: depth_of.get(weight, 0) for name, weight in model.named_parameters()}
