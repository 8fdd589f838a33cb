"""Norms over a grid, each image by itself, in place of batch norms."""

import math
from typing import Literal

from torch import nn

from foveal.layers.vision.conv2d import BatchNorm2d

Norm2d = Literal["layer", "instance", "group"]
MAX_GROUPS = 32
"""Wu and He 2018, 4.1; fewer where the channels are no multiple."""


def replace_batch_norm(network: nn.Module, kind: Norm2d) -> bool:
    """Put a norm of that kind in the place of every batch norm; False if there is none.

    All three are torch's GroupNorm (Wu and He 2018, figure 2): mean and variance are of one image, over all
    places of one group of channels. `layer` has all channels in one (Ba et al. 2016), `instance` has each in
    one of its own (Ulyanov et al. 2016). Gain and bias are of each channel, as batch norm's.
    """
    found = [
        (parent, name, norm)
        for parent in network.modules()
        for name, norm in parent.named_children()
        if isinstance(norm, BatchNorm2d)
    ]
    for parent, name, norm in found:
        channels = norm.num_features
        groups = {"layer": 1, "instance": channels, "group": math.gcd(MAX_GROUPS, channels)}[kind]
        setattr(parent, name, nn.GroupNorm(groups, channels, norm.eps))
    return bool(found)
