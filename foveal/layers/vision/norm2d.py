"""Norms over each feature map of a single image, instead of batch norms."""

import math
from typing import Literal

from torch import Tensor, nn

from foveal.layers.vision.conv2d import BatchNorm2d

Norm2d = Literal["layer", "instance", "group"]
MAX_GROUPS = 32
"""Groups at most (Wu and He 2018, 4.1); fewer where the number of channels is no multiple."""


class ContiguousGroupNorm(nn.GroupNorm):
    """torch's GroupNorm of maps that lie one after the other in memory.

    On a CPU, torch's norms of several groups take up to five times as long if the channels lie last.
    """

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input.contiguous())


def replace_batch_norm(network: nn.Module, kind: Norm2d) -> bool:
    """Replace every batch norm by the norm called `kind`. Return False if there is no batch norm.

    All three kinds are torch's GroupNorm (Wu and He 2018, figure 2): mean and variance are computed per
    image, over all positions of a group of channels. `layer` has a single group with all channels (Ba et al.
    2016), `instance` a group per channel (Ulyanov et al. 2016). Each channel has a gain and a bias, as in a
    batch norm.
    """
    batch_norms = [
        (parent, name, norm)
        for parent in network.modules()
        for name, norm in parent.named_children()
        if isinstance(norm, BatchNorm2d)
    ]
    for parent, name, norm in batch_norms:
        channels = norm.num_features
        groups = {"layer": 1, "instance": channels, "group": math.gcd(MAX_GROUPS, channels)}[kind]
        kind_of_norm = nn.GroupNorm if groups == 1 else ContiguousGroupNorm
        setattr(parent, name, kind_of_norm(groups, channels, norm.eps))
    return bool(batch_norms)
