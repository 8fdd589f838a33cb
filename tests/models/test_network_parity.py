"""Networks give what Hugging Face's give on the same weights, or what a written-out one gives."""

import re
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from foveal.interop.huggingface.resnet import hf_name
from foveal.models.depthwise_networks import ConvNeXt
from foveal.models.encoder import EncoderWithHead
from foveal.models.network_registry import NETWORKS
from tests.support.named_networks import logits, make_network

# As torchvision and textbooks write them: channels of a convolution (kernel, stride and padding where they
# are not 3, 1 and 1), and pooling as M or A with its side.
WRITTEN = {
    "lenet-5": ("6k5p0 A2 16k5p0 A2", torch.tanh),
    "alexnet": ("64k11s4p2 M3 192k5p2 M3 384 256 256 M3", torch.relu),
    "vgg-11": ("64 M2 128 M2 256 256 M2 512 512 M2 512 512 M2", torch.relu),
    "vgg-16": ("64 64 M2 128 128 M2 256 256 256 M2 512 512 512 M2 512 512 512 M2", torch.relu),
}


@pytest.mark.parametrize("network", WRITTEN)
def test_straight_networks_equal_the_written_out_ones(network):
    size = 32 if network != "alexnet" else 63
    model = make_network(network, size, 7).eval()
    convolutions = [part for part in model.modules() if isinstance(part, nn.Conv2d)]
    images = torch.randn(2, 1 if network == "lenet-5" else 3, size, size)
    x, (layers, activation) = images, WRITTEN[network]
    for layer in layers.split():
        if layer[0] in "MA":
            x = (F.max_pool2d if layer[0] == "M" else F.avg_pool2d)(x, int(layer[1]), 2)
            continue
        found = re.fullmatch(r"(\d+)(?:k(\d+))?(?:s(\d+))?(?:p(\d+))?", layer)
        assert found is not None
        width, kernel, stride, padding = (
            int(n or m) for n, m in zip(found.groups(), (0, 3, 1, 1), strict=True)
        )
        part = convolutions.pop(0)
        assert part.weight.shape == (width, x.shape[1], kernel, kernel)
        x = activation(F.conv2d(x, part.weight, part.bias, stride, padding))
    assert not convolutions
    x = x.flatten(2).mT.flatten(1)
    for part in model.head.hidden:
        x = activation(part(x))
    expected = model.head.projection(x)
    assert float(expected.detach().std()) > 0.01
    torch.testing.assert_close(logits(model, images), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("network", "kind"), [("resnet-18", "basic"), ("resnet-50", "bottleneck")])
def test_logits_equal_hugging_faces(network, kind):
    """In evaluation far from the first weights and statistics; in training the statistics gathered, too."""
    transformers = pytest.importorskip("transformers")
    recipe: Any = NETWORKS[network]
    config = transformers.ResNetConfig(
        hidden_sizes=list(recipe.widths), depths=list(recipe.depths), layer_type=kind, num_labels=7
    )
    peer = transformers.ResNetForImageClassification(config).double()
    for name, part in peer.state_dict().items():
        if part.dim() == 1:  # norms' gains and variances near one, so that numbers keep their size
            torch.nn.init.uniform_(part, *((0.5, 1.5) if name.endswith(("weight", "var")) else (-0.5, 0.5)))
    model = make_network(network, 64, 7).double()
    weights = peer.state_dict()
    assert {hf_name(name, recipe.depths) for name in model.state_dict()} == weights.keys()
    model.load_state_dict({name: weights[hf_name(name, recipe.depths)] for name in model.state_dict()})
    images = torch.randn(2, 3, 64, 64, dtype=torch.float64)
    for training in (False, True):
        expected = peer.train(training)(images).logits
        found = logits(model.train(training), images)
        assert expected.std() > 0.1
        torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)
    for name, part in model.state_dict().items():
        torch.testing.assert_close(
            part, peer.state_dict()[hf_name(name, recipe.depths)], rtol=1e-8, atol=1e-8
        )


def test_convnext_equals_hugging_faces():
    transformers = pytest.importorskip("transformers")
    depths, widths = (2, 1, 3, 1), (6, 8, 10, 12)
    recipe = ConvNeXt(depths, widths)
    config = transformers.ConvNextConfig(
        hidden_sizes=list(widths), depths=list(depths), num_labels=7, layer_norm_eps=1e-6
    )
    peer = transformers.ConvNextForImageClassification(config).double()
    for part in peer.parameters():
        nn.init.uniform_(part, -0.8, 0.8)
    encoder = recipe.make_encoder(3, False)
    model = EncoderWithHead(encoder, recipe.make_head(12, (2, 2), 7, 0.0)).double()
    head = model.head
    ours = [*model.encoder.parameters(), *head.norm.parameters(), *head.projection.parameters()]
    for mine, there in zip(ours, peer.parameters(), strict=True):
        assert mine.shape == there.shape
        mine.data = there.detach().clone()
    images = torch.randn(2, 3, 64, 64, dtype=torch.float64)
    expected, found = peer(images).logits, logits(model, images)
    assert expected.std() > 0.1
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)
    expected.square().sum().backward()
    found.square().sum().backward()
    for mine, there in zip(ours, peer.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, there.grad, rtol=1e-8, atol=1e-8)
