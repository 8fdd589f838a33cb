"""Inverted residual blocks equal Hugging Face's on the same weights."""

from typing import Any

import pytest
import torch
from torch import nn

from foveal.layers.vision.inverted_residual import InvertedResidual

C = 4
NAMES = {"0": "expand_1x1", "1": "conv_3x3", "2": "reduce_1x1"}


@pytest.mark.parametrize("side", [7, 8])
@pytest.mark.parametrize(("d_out", "stride"), [(C, 1), (6, 1), (C, 2), (6, 2)])
def test_a_block_equals_hugging_faces(d_out, stride, side):
    transformers = pytest.importorskip("transformers")
    modules = transformers.models.mobilenet_v2.modeling_mobilenet_v2
    config = transformers.MobileNetV2Config(
        expand_ratio=6.0, depth_divisible_by=1, min_depth=1, tf_padding=True, layer_norm_eps=1e-3
    )
    peer = modules.MobileNetV2InvertedResidual(config, C, d_out, stride).double()
    for parameter in peer.parameters():
        nn.init.uniform_(parameter, -2, 2)  # numbers above 6 occur
    block = InvertedResidual(C, d_out, 3, stride, 6).double()
    weights = peer.state_dict()
    for name in block.state_dict():
        _, number, rest = name.split(".", 2)
        block.state_dict()[name].copy_(weights[f"{NAMES[number]}.{rest.replace('norm.', 'normalization.')}"])
    x = 3 * torch.randn(3, C, side, side, dtype=torch.float64)
    for training in (False, True):
        expected = peer.train(training)(x)
        torch.testing.assert_close(block.train(training)(x), expected, rtol=1e-10, atol=1e-10)


def test_without_expansion_there_is_no_first_convolution():
    block: Any = InvertedResidual(C, 6, 5, 1, 1)
    assert [part.convolution.kernel_size for part in block.body] == [(5, 5), (1, 1)]
