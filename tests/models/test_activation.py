"""Another activation function than published: everywhere in the network, and nothing else."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.config import ConfigError
from foveal.models.encoder import EncoderWithHead
from foveal.models.image_networks import image_encoder, image_head
from foveal.ops.activation import ACTIVATIONS
from foveal.tasks.config import load_config
from tests.support.named_networks import logits, make_network

RECTIFIED = ("mlp", "vgg-11", "plain-20", "resnet-20", "resnet-50")


def other(network: str, name: Any) -> EncoderWithHead:
    encoder = image_encoder(network, 3, "small", name)
    return EncoderWithHead(encoder, image_head(network, encoder, 32, 5, 0.0, name))


@pytest.mark.parametrize("network", RECTIFIED)
def test_every_rectifier_is_replaced(network, monkeypatch):
    """With tanh the network is the published one in which `relu` is taken for tanh."""
    torch.manual_seed(1)
    changed = other(network, "tanh")
    torch.manual_seed(1)
    published = make_network(network, 32, 5, "small")
    assert all(map(torch.equal, changed.parameters(), published.parameters()))
    x = torch.randn(4, 3, 32, 32)
    expected = logits(published, x)
    found = logits(changed, x)
    assert not torch.equal(found, expected)

    seen = []

    def tanh(x: Tensor) -> Tensor:
        seen.append(x.shape)
        return x.tanh()

    for module in published.modules():
        if getattr(module, "activation", None) is F.relu:
            monkeypatch.setattr(module, "activation", tanh)
    monkeypatch.setitem(ACTIVATIONS, "relu", tanh)  # what modules in a sequence look up
    assert torch.equal(logits(published, x), found)
    weights = [m for n, m in published.named_modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    shortcuts = [n for n, _ in published.named_modules() if n.endswith("shortcut.convolution")]
    assert len(seen) == len(weights) - len(shortcuts) - 1, "one behind each layer but the last"


def test_lenet_has_tanh_until_told():
    x = torch.randn(2, 1, 32, 32)
    for name in ("published", "tanh", "relu"):
        torch.manual_seed(1)
        encoder: Any = image_encoder("lenet-5", 1, "published", name)
        model = EncoderWithHead(encoder, image_head("lenet-5", encoder, 32, 5, 0.0, name))
        first = (torch.tanh if name != "relu" else F.relu)(encoder.blocks[0][0](x))
        torch.testing.assert_close(encoder.blocks[0][:2](x), first)
        assert model.head.activation is (F.relu if name == "relu" else torch.tanh)


def test_networks_with_activations_of_their_own_say_so():
    with pytest.raises(
        ConfigError, match=r"network_activation=tanh: convnext-t has its own activation; leave it"
    ):
        image_encoder("convnext-t", 3, "small", "tanh")
    with pytest.raises(ConfigError, match=r"model\.encoder\.network_activation"):
        load_config("image-classification", ["model.encoder.network_activation=tahn"])
