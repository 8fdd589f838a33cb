"""Random weights of EfficientNet under the names of the published file."""

import torch
from torch import Tensor

STAGES = (
    (1, 16, 3, 1),
    (2, 24, 3, 2),
    (2, 40, 5, 2),
    (3, 80, 3, 2),
    (3, 112, 5, 1),
    (4, 192, 5, 2),
    (1, 320, 3, 1),
)
"""Depth, channels, kernel and stride (Tan and Le 2019, table 1)."""


def block_shapes() -> list[tuple[int, int, int, int]]:
    """Yield the input and output channels, kernel and stride of each block."""
    found, d_in = [], 32
    for depth, d_out, kernel, stride in STAGES:
        for number in range(depth):
            found.append((d_in, d_out, kernel, 1 if number else stride))
            d_in = d_out
    return found


def random_weights(classes: int) -> dict[str, Tensor]:
    """Return random weights and statistics, unlike initial ones, under the names of the published file."""
    weights: dict[str, Tensor] = {}

    def add(convolution: str, norm: str, *shape: int) -> None:
        fan = shape[1] * shape[2] ** 2
        weights[f"{convolution}.weight"] = torch.randn(*shape[:3], shape[2]) * (2 / fan) ** 0.5
        for name in ("weight", "running_var"):
            weights[f"{norm}.{name}"] = torch.empty(shape[0]).uniform_(0.5, 1.5)
        for name in ("bias", "running_mean"):
            weights[f"{norm}.{name}"] = torch.empty(shape[0]).uniform_(-0.5, 0.5)
        weights[f"{norm}.num_batches_tracked"] = torch.tensor(7)

    add("_conv_stem", "_bn0", 32, 3, 3)
    for i, (d_in, d_out, kernel, _) in enumerate(block_shapes()):
        wide = 6 * d_in if i else d_in
        if i:
            add(f"_blocks.{i}._expand_conv", f"_blocks.{i}._bn0", wide, d_in, 1)
        add(f"_blocks.{i}._depthwise_conv", f"_blocks.{i}._bn1", wide, 1, kernel)
        add(f"_blocks.{i}._project_conv", f"_blocks.{i}._bn2", d_out, wide, 1)
    add("_conv_head", "_bn1", 1280, 320, 1)
    weights["_fc.weight"], weights["_fc.bias"] = torch.randn(classes, 1280) / 36, torch.randn(classes)
    return weights
