"""A first convolution with decorrelated outputs, whose weights are computed from images instead of
learned."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.core.runtime import exact_dtype

EPSILON = 5e-4
"""Added to the variances, so that directions in which patches hardly differ, which are noise, are not
magnified."""


class WhiteningConv2d(nn.Conv2d):
    """`y = [W; -W] * x + b` over patches with side `kernel` (Jordan 2024, 3.2, after Page 2019).

    The rows of `W` are the eigenvectors of the patches' second-moment matrix, each divided by the square root
    of its eigenvalue, so the outputs are uncorrelated with variance 1. Each filter occurs with both signs
    because a rectifier follows. `fit` computes W, which is frozen; the bias is learned. Before `fit`, W is
    random, and noise with variance 1 gives outputs with variance 1.

    Example:

        >>> convolution, images = layers.WhiteningConv2d(3, kernel=2), torch.randn(8, 3, 32, 32)
        >>> convolution.fit(images)
        >>> tuple(convolution(images).shape)
        (8, 24, 31, 31)
    """

    def __init__(self, channels: int, kernel: int):
        super().__init__(channels, 2 * channels * kernel**2, kernel)
        self.weight.requires_grad_(False)

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.weight[0].numel() ** -0.5)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    @torch.no_grad()
    def fit(self, images: Float[Tensor, "N C H W"]) -> None:
        """Compute W; see `layers.data_dependent_init`."""
        size = self.weight[0].numel()
        exact = exact_dtype(images.device)
        moments = torch.zeros(size, size, dtype=exact, device=images.device)
        count = 0
        for chunk in torch.split(images, 256):  # unfolded, images are kernel^2 times as large
            patches = F.unfold(chunk, self.kernel_size).transpose(1, 2).reshape(-1, size).to(exact)
            moments += patches.T @ patches
            count += len(patches)
        values, vectors = torch.linalg.eigh(moments / count)
        rows = (vectors / (values.clamp(min=0) + EPSILON).sqrt()).T
        # An eigenvector's sign is arbitrary. The largest element of each is made positive.
        rows = rows * rows.gather(1, rows.abs().argmax(1, keepdim=True)).sign()
        self.weight.copy_(torch.cat([rows, -rows]).view_as(self.weight))
