"""A network for small images: `--model small-net`."""

from torch import Tensor, nn

import foveal


@foveal.register_model("small-net", size=32, classes=10)
class SmallNet(nn.Module):
    """Two convolutions, each with a norm and a pooling."""

    def __init__(self, channels: int, width: int = 32):
        super().__init__()
        self.width = width
        self.layers = nn.Sequential(
            *(nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)),
        )

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)
