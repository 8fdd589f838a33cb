"""A head for one label: the cosine between the mean of the memory and a direction of each class."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import foveal
from foveal.core.memory import Memory


@foveal.register_head("cosine")
class CosineHead(nn.Module):
    def __init__(self, width: int, classes: int, sharpness: float = 10.0):
        super().__init__()
        self.width, self.classes, self.sharpness = width, classes, sharpness
        self.projection = nn.Linear(width, classes, bias=False)

    def reset_parameters(self) -> None:
        self.projection.reset_parameters()

    def forward(self, memory: Memory) -> tuple[Tensor, dict[str, Tensor]]:
        return memory.vectors.sum(1) / memory.mask.sum(1, keepdim=True).clamp(min=1), {}

    def project(self, features: Tensor) -> Tensor:
        directions = F.normalize(self.projection.weight, dim=1)
        return self.sharpness * torch.matmul(F.normalize(features, dim=1), directions.T)
