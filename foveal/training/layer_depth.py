"""How many layers below the head each parameter is, as the modules state it."""

from torch import nn

from foveal.core.module_facts import layer_groups


def layer_depths(model: nn.Module) -> dict[str, int]:
    """Return the depth of each parameter by its name.

    The depth is 1 in the last block (the encoder's, if there is an encoder), one more in each block before
    and in what is before all blocks; 0 in the head and in a norm behind the blocks.
    """
    depth_of = {weight: depth for depth, group in enumerate(layer_groups(model)) for weight in group}
    return {name: depth_of.get(weight, 0) for name, weight in model.named_parameters()}
