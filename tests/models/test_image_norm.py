"""Norms of one image in the place of batch norms: everywhere, as they are written, and nothing else."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal.config import ConfigError
from foveal.layers.vision.conv2d import BatchNorm2d
from foveal.layers.vision.norm2d import replace_batch_norm
from foveal.models.image_networks import image_encoder

KINDS = ("layer", "instance", "group")


def written_out(x: Tensor, kind: str, epsilon: float = 1e-5) -> Tensor:
    """Each image by itself, as Wu and He write it in figure 2."""
    groups = {"layer": 1, "instance": x.shape[1], "group": 32 if x.shape[1] % 32 == 0 else 16}[kind]
    parts = x.unflatten(1, (groups, -1))
    mean, variance = parts.mean((2, 3, 4), keepdim=True), parts.var((2, 3, 4), correction=0, keepdim=True)
    return ((parts - mean) / (variance + epsilon).sqrt()).flatten(1, 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("channels", [64, 48])
def test_as_written(kind, channels):
    network: Any = nn.Sequential(nn.Conv2d(3, channels, 3), nn.Identity())
    encoder: Any = image_encoder("resnet-20", 3, "small")
    published = encoder.blocks[0].norm
    network[1] = type(published)(channels)
    assert replace_batch_norm(network, kind)
    gain, bias = torch.randn(2, channels)
    with torch.no_grad():
        network[1].weight.copy_(gain)
        network[1].bias.copy_(bias)
    x = torch.randn(4, 3, 9, 7)
    expected = written_out(network[0](x), kind) * gain[:, None, None] + bias[:, None, None]
    torch.testing.assert_close(network(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("channels", [64, 48])
def test_the_layout_in_memory_does_not_matter(kind, channels):
    """Outputs and gradients of maps whose channels lie last are those that torch gives without copies."""
    network: Any = nn.Sequential(BatchNorm2d(channels))
    assert replace_batch_norm(network, kind)
    network.double()
    x = torch.randn(4, channels, 9, 7, dtype=torch.float64)
    results = []
    for layout in (torch.contiguous_format, torch.channels_last):
        one = x.clone(memory_format=layout).requires_grad_()
        network(one).sin().sum().backward()
        results.append([network(one), one.grad, network[0].weight.grad, network[0].bias.grad])
        network.zero_grad()
    for contiguous, last in zip(*results, strict=True):
        torch.testing.assert_close(contiguous, last)
    torch.testing.assert_close(results[0][0], written_out(x, kind))


@pytest.mark.parametrize("kind", ["instance", "group"])
def test_torch_reads_one_map_after_the_other(kind, monkeypatch):
    """torch's kernel for channels that lie last takes up to five times as long on a CPU."""
    network: Any = nn.Sequential(BatchNorm2d(64))
    assert replace_batch_norm(network, kind)
    layouts: list[bool] = []

    def group_norm(x: Tensor, *rest: Any) -> Tensor:
        layouts.append(x.is_contiguous())
        return x

    monkeypatch.setattr("torch.nn.functional.group_norm", group_norm)
    network(torch.randn(2, 64, 5, 5).contiguous(memory_format=torch.channels_last))
    assert layouts == [True]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("network", ["resnet-20", "resnet-18", "resnet-50", "plain-20", "efficientnet-lite0"])
def test_all_are_replaced_and_images_do_not_know_each_other(network, kind):
    """No batch norm is left, parameters are as many, and in training an image's map is what it is alone."""
    published = image_encoder(network, 3, "small")
    encoder = image_encoder(network, 3, "small", normalization=kind)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in encoder.modules())
    counts = [sum(weight.numel() for weight in model.parameters()) for model in (published, encoder)]
    assert counts[0] == counts[1]
    assert not list(encoder.buffers())
    x = torch.randn(3, 3, 32, 32, dtype=torch.float64)
    encoder.double().train()
    torch.testing.assert_close(through(encoder, x)[1:2], through(encoder, x[1:2]))


def through(encoder: Any, x: Tensor) -> Tensor:
    for block in encoder.blocks:
        x = block(x)
    return x


def test_a_map_of_one_place_has_no_variance():
    """Instance norm of it is the bias, in training too, and no error."""
    encoder = image_encoder("resnet-18", 3, "published", normalization="instance").train()
    assert through(encoder, torch.randn(2, 3, 32, 32)).isfinite().all()


@pytest.mark.parametrize("network", ["vgg-11", "convnext-t", "vit-ti", "lenet-5", "hog"])
def test_networks_without_batch_norms_say_so(network):
    with pytest.raises(ConfigError, match=rf"network_norm=group: {network} has no batch norms"):
        image_encoder(network, 3, "small", normalization="group", size=32)
