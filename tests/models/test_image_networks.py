"""Named networks have the published numbers of parameters and grids, fit their images, and learn."""

import math
import re
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from foveal.config import ConfigError
from foveal.core.runtime import autocast
from foveal.layers.vision.residual import basic_block
from foveal.models.airbench import AirbenchNetwork
from foveal.models.depthwise_networks import ConvNeXt, EfficientNetLite, InvertedStage
from foveal.models.encoder import EncoderWithHead
from foveal.models.image_networks import image_encoder, smallest_size, training_settings
from foveal.models.network_registry import NETWORKS
from foveal.models.resnet import ResNet
from foveal.models.sequential_networks import ConvLayer, SequentialNetwork
from tests.support.gradients import gradient_of
from tests.support.named_networks import logits, make_network

PROJECTIONS = 64 * 128 + 128 * 256 + 256 * 512 + 2 * (128 + 256 + 512)
PUBLISHED = {
    # Of a feature, (numbers + 1) times classes.
    "color-histogram": (32, 10, (8**3 + 1) * 10),
    "hog": (32, 10, (4 * 4 * 9 + 1) * 10),
    "visual-words": (32, 10, (4 * 400 + 1) * 10),
    "patch-similarities": (32, 10, (9 * 2 * 256 + 1) * 10),
    "linear": (32, 10, 3 * 32 * 32 * 10 + 10),
    "mlp": (32, 10, (3 * 32 * 32 + 1) * 512 + 513 * 10),
    "mlp-10": (32, 10, 3073 * 2048 + 8 * 2049 * 2048 + 2049 * 10),
    # Every map sees all maps: 61,706 (the paper has 60,000 with fewer connections). torchvision's AlexNet.
    "lenet-5": (32, 10, 61_706),
    "alexnet": (224, 1000, 61_100_840),
    # Simonyan and Zisserman 2015, table 2: 133, 133, 138 and 144 million.
    "vgg-11": (224, 1000, 132_863_336),
    "vgg-13": (224, 1000, 133_047_848),
    "vgg-16": (224, 1000, 138_357_544),
    "vgg-19": (224, 1000, 143_667_240),
    # 32 pixels, 10 classes: He et al. 2015, table 6, has 0.27, 0.46, 0.66, 0.85 and 1.7 million.
    "plain-20": (32, 10, 269_722),
    "plain-56": (32, 10, 853_018),
    "resnet-20": (32, 10, 269_722),
    "resnet-20-attention": (32, 10, 269_722 + 4 * 32 * 4 + 1),
    "resnet-32": (32, 10, 464_154),
    "resnet-44": (32, 10, 658_586),
    "resnet-56": (32, 10, 853_018),
    "resnet-110": (32, 10, 1_727_962),
    # torchvision's; the plain ones have no projections and their norms.
    "plain-18": (224, 1000, 11_689_512 - PROJECTIONS),
    "plain-34": (224, 1000, 21_797_672 - PROJECTIONS),
    "resnet-18": (224, 1000, 11_689_512),
    "resnet-34": (224, 1000, 21_797_672),
    "resnet-50": (224, 1000, 25_557_032),
    "resnet-101": (224, 1000, 44_549_160),
    "resnet-152": (224, 1000, 60_192_808),
    "convnext-t": (224, 1000, 28_589_128),
    "convnext-s": (224, 1000, 50_223_688),
    "convnext-b": (224, 1000, 88_591_464),
    # Touvron et al. 2021, table 1, has 5, 22 and 86 million; timm's. Without a token and its position.
    "vit-ti": (224, 1000, 5_717_416),
    "vit-s": (224, 1000, 22_050_664),
    "vit-b": (224, 1000, 86_567_656),
    "vit-ti-mean": (224, 1000, 5_717_416 - 2 * 192),
    "vit-s-mean": (224, 1000, 22_050_664 - 2 * 384),
    "vit-b-mean": (224, 1000, 86_567_656 - 2 * 768),
    "efficientnet-lite0": (224, 1000, 4_652_008),  # timm's
    # Jordan 2024 has 1.97 million; the whitening's 288 weights are not learned.
    "airbench": (32, 10, 1_972_802),
    "airbench95": (32, 10, 4_606_530),
    "airbench96": (32, 10, 9_918_786),
}


@pytest.mark.parametrize("network", NETWORKS)
def test_parameters(network):
    size, classes, count = PUBLISHED[network]
    with torch.device("meta"):
        model = make_network(network, size, classes)
    assert sum(parameter.numel() for parameter in model.parameters()) == count
    if re.search(r"-\d+$", network):  # the number counts layers with weights, but not shortcuts'
        parts = [part for name, part in model.named_modules() if "shortcut" not in name]
        assert network.endswith(f"-{sum(isinstance(part, (nn.Conv2d, nn.Linear)) for part in parts)}")


@pytest.mark.parametrize(
    ("network", "stem", "size", "grid"),
    [
        ("resnet-20", "published", 32, 8),
        ("resnet-20", "small", 30, 8),
        ("plain-56", "published", 32, 8),
        ("resnet-18", "published", 224, 7),
        ("resnet-50", "published", 100, 4),
        ("resnet-18", "published", 32, 1),
        ("resnet-18", "small", 32, 4),
        ("plain-34", "small", 28, 4),
        ("convnext-t", "published", 224, 7),
        ("convnext-t", "small", 32, 4),
        ("resnet-20-attention", "published", 32, 8),
        ("vit-ti", "published", 224, 14),
        ("vit-ti-mean", "small", 32, 8),
        ("efficientnet-lite0", "published", 224, 7),
        ("efficientnet-lite0", "small", 32, 2),
        ("airbench", "published", 32, 3),
        ("lenet-5", "published", 28, 4),
        ("color-histogram", "published", 30, 1),
        ("hog", "published", 39, 4),
        ("visual-words", "published", 30, 2),
        ("patch-similarities", "published", 30, 3),
        ("alexnet", "published", 224, 6),
        ("alexnet", "published", 63, 1),
        ("alexnet", "small", 32, 7),
        ("vgg-16", "published", 224, 7),
        ("vgg-11", "small", 32, 1),
    ],
)
def test_grids(network, stem, size, grid):
    with torch.device("meta"):
        encoder = image_encoder(network, 1, stem, size=size)
        memory, _ = encoder(torch.empty(2, 1, size, size))
    assert memory.segments[0].grid == encoder.grid(size) == (grid, grid)
    assert memory.vectors.shape[1] == grid**2


@pytest.mark.slow
@pytest.mark.parametrize("stem", ["published", "small"])
@pytest.mark.parametrize(
    "network",
    ["lenet-5", "alexnet", "vgg-11", "resnet-20", "resnet-50", "convnext-t", "efficientnet-lite0", "hog"],
)
def test_the_grid_of_a_size_is_known_beforehand(network, stem):
    with torch.device("meta"):
        encoder = image_encoder(network, 1, stem)
        for size in (1, 9, 15, 16, 31, 33, 62, 63):
            if min(encoder.grid(size)) < 1:
                with pytest.raises(RuntimeError):
                    encoder(torch.empty(2, 1, size, size))
            else:
                memory, _ = encoder(torch.empty(2, 1, size, size))
                assert memory.segments[0].grid == encoder.grid(size)


def test_hidden_layers_see_the_grid_there_is_up_to_the_published_one():
    for size, side in ((32, 1), (64, 2), (224, 7), (300, 7)):
        with torch.device("meta"):
            assert make_network("vgg-11", size, 10).head.grid == (side, side)


SMALLEST = {"alexnet": 63, "vgg-16": 32, "lenet-5": 16, "convnext-t": 32, "resnet-50": 1}


@pytest.mark.parametrize(("network", "size"), SMALLEST.items())
def test_images_that_are_too_small_are_told(network, size):
    with torch.device("meta"):
        make_network(network, size, 10)
        with pytest.raises(
            ConfigError, match=f"of {size - 1}x{size - 1} are too small for .*{network}: raise"
        ):
            make_network(network, size - 1, 10)


def test_without_a_convolution_every_pixel_has_a_weight_of_its_own():
    """`s = W x + b`, and with a hidden layer `s = W_2 relu(W_1 x + b_1) + b_2`."""
    x = torch.randn(2, 3, 5, 5)
    for network in ("linear", "mlp"):
        head = (model := make_network(network, 5, 4)).head
        found = x.permute(0, 2, 3, 1).flatten(1)
        for layer in head.hidden:
            found = F.relu(found @ layer.weight.T + layer.bias)
        torch.testing.assert_close(logits(model, x), found @ head.projection.weight.T + head.projection.bias)


@pytest.mark.parametrize("network", NETWORKS)
def test_networks_without_batch_norms_are_not_trained_at_the_rate_of_those_with(network):
    with torch.device("meta"):
        encoder: Any = image_encoder(network, 3, "small", size=smallest_size(network, 32))
    has_norms = any(isinstance(module, nn.BatchNorm2d) for module in encoder.modules())
    assert has_norms or "optimizer.name=adamw" in training_settings(network)


def test_unknown_networks_are_told():
    with pytest.raises(ConfigError, match="unknown network 'resnet20'; did you mean 'resnet-20'"):
        image_encoder("resnet20", 3, "published")


@pytest.mark.parametrize(
    "network",
    [
        "resnet-20",
        "plain-20",
        "resnet-18",
        "resnet-50",
        "lenet-5",
        "convnext-t",
        "efficientnet-lite0",
        "airbench",
        "resnet-20-attention",
        "vit-ti",
    ],
)
def test_reset_parameters_fills_everything(network):
    with torch.device("meta"):
        model = make_network(network, 32, 10)
    model = model.to_empty(device="cpu")
    with torch.no_grad():
        for part in (*model.parameters(), *model.buffers()):
            part.fill_(torch.nan if part.is_floating_point() else -1)
    for layer in model.modules():
        reset: Any = getattr(layer, "reset_parameters", None)
        if reset is not None:
            reset()
    assert all(part.isfinite().all() for part in (*model.parameters(), *model.buffers()))
    first = F.cross_entropy(
        logits(model, torch.randn(10, 1 if network == "lenet-5" else 3, 32, 32)), torch.arange(10)
    )
    assert abs(float(first.detach()) / math.log(10) - 1) < 0.3


RECIPES = [
    *(
        ResNet(basic_block, (1, 1), (8, 16), shortcut, first=8, pooled=False)
        for shortcut in ("padded", "projection", "none")
    ),
    SequentialNetwork((ConvLayer(8), ConvLayer(16, pool=2)), hidden=(20,), side=4),
    ConvNeXt((1, 1), (8, 16)),
    EfficientNetLite((InvertedStage(1, 4, 3, 1, expansion=1), InvertedStage(2, 8, 5, 2)), first=8, last=32),
    AirbenchNetwork((24, 24)),
]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: type(recipe).__name__)
def test_a_small_one_learns_by_heart(recipe):
    encoder = recipe.make_encoder(3, small=True)
    model = EncoderWithHead(encoder, recipe.make_head(encoder.width, encoder.grid(8), 3, 0.0))
    images, labels = torch.randn(12, 3, 8, 8), torch.arange(12) % 3
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(100):
        optimizer.zero_grad()
        loss = F.cross_entropy(logits(model, images), labels)
        loss.backward()
        if not step:
            learned = (parameter for parameter in model.parameters() if parameter.requires_grad)
            assert all(gradient_of(parameter).ne(0).any() for parameter in learned)
        optimizer.step()
    assert float(loss.detach()) < 0.1
    assert logits(model.eval(), images).argmax(1).tolist() == labels.tolist()


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: type(recipe).__name__)
def test_in_bfloat16_vectors_come_close(recipe):
    encoder = recipe.make_encoder(3, small=True)
    images = torch.randn(12, 3, 8, 8)
    exact, _ = encoder(images)
    with autocast(torch.device("cpu"), "bfloat16"):
        memory, _ = encoder(images)
    assert 0 < (memory.vectors.float() - exact.vectors).norm() < 0.05 * exact.vectors.norm()
    memory.vectors.float().square().sum().backward()
    learned = (parameter for parameter in encoder.parameters() if parameter.requires_grad)
    assert all(parameter.grad.dtype == torch.float32 for parameter in learned)
