"""A linear classifier of images, and pixels without limits that matter."""

import torch
from torch import Tensor, nn

from foveal.inspection.image_gradients import PixelLimits

WIDE = PixelLimits(torch.full((3, 1, 1), -400.0), torch.full((3, 1, 1), 620.0))
"""Levels are 4 apart, and no pixel of noise is near the limits."""


class LinearClassifier(nn.Module):
    """The logits `W x + b` of images of any one shape."""

    def __init__(self, classes: int, shape: tuple[int, int, int] = (3, 6, 6)):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, *shape))
        self.bias = nn.Parameter(torch.randn(classes))

    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1) @ self.weight.flatten(1).T + self.bias
