"""Named networks have the published numbers of parameters and Hugging Face's outputs, and learn."""

import math
import re
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from foveal.config import ConfigError
from foveal.layers.residual import basic
from foveal.models.convnets import (
    NETWORKS,
    Layer,
    ResidualNetwork,
    StraightNetwork,
    image_encoder,
    image_head,
)
from foveal.models.encoder import Encoded

PROJECTIONS = 64 * 128 + 128 * 256 + 256 * 512 + 2 * (128 + 256 + 512)
PUBLISHED = {
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
}


def made(network: str, size: int, classes: int, stem: Any = "published") -> Encoded:
    encoder = image_encoder(network, 1 if network == "lenet-5" else 3, stem)
    return Encoded(encoder, image_head(network, encoder, size, classes, 0.0))


def logits(model: Encoded, images: torch.Tensor) -> torch.Tensor:
    memory, _ = model.encoder(images)
    features, _ = model.head(memory)
    return model.head.project(features)


@pytest.mark.parametrize("network", NETWORKS)
def test_parameters(network):
    size, classes, count = PUBLISHED[network]
    with torch.device("meta"):
        model = made(network, size, classes)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


def test_the_name_counts_layers_with_weights():
    """Convolutions, hidden layers and the projection; shortcuts' are not counted."""
    for network in NETWORKS:
        if network == "alexnet":
            continue
        with torch.device("meta"):
            model = made(network, *PUBLISHED[network][:2])
        layers = [
            name
            for name, part in model.named_modules()
            if isinstance(part, (nn.Conv2d, nn.Linear)) and "shortcut" not in name
        ]
        assert network.endswith(f"-{len(layers)}")


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
        ("lenet-5", "published", 28, 4),
        ("alexnet", "published", 224, 6),
        ("alexnet", "published", 63, 1),
        ("alexnet", "small", 32, 7),
        ("vgg-16", "published", 224, 7),
        ("vgg-11", "small", 32, 1),
    ],
)
def test_grids(network, stem, size, grid):
    with torch.device("meta"):
        memory, _ = image_encoder(network, 1, stem)(torch.empty(2, 1, size, size))
    assert memory.segments[0].grid == (grid, grid)
    assert memory.vectors.shape[1] == grid**2


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
    model = made(network, size, 7).eval()
    convolutions = [part for part in model.modules() if isinstance(part, nn.Conv2d)]
    images = torch.randn(2, 1 if network == "lenet-5" else 3, size, size)
    x, (layers, activation) = images, WRITTEN[network]
    for layer in layers.split():
        if layer[0] in "MA":
            x = (F.max_pool2d if layer[0] == "M" else F.avg_pool2d)(x, int(layer[1]), 2)
            continue
        found = re.fullmatch(r"(\d+)(?:k(\d+))?(?:s(\d+))?(?:p(\d+))?", layer)
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


def test_hidden_layers_see_the_grid_there_is_up_to_the_published_one():
    for size, side in ((32, 1), (64, 2), (224, 7), (300, 7)):
        with torch.device("meta"):
            assert made("vgg-11", size, 10).head.grid == (side, side)


@pytest.mark.parametrize(("network", "size"), [("alexnet", 62), ("vgg-16", 31), ("lenet-5", 10)])
def test_images_that_are_too_small_are_told(network, size):
    with torch.device("meta"):
        made(network, {"alexnet": 63, "vgg-16": 32, "lenet-5": 16}[network], 10)
        with pytest.raises(
            ConfigError, match=f"images of {size}x{size} are too small for .*{network}: raise"
        ):
            made(network, size, 10)


def test_unknown_networks_are_told():
    with pytest.raises(ConfigError, match="unknown network 'resnet20'; did you mean 'resnet-20'"):
        image_encoder("resnet20", 3, "published")


def theirs(name: str, depths: tuple[int, ...]) -> str:
    """Hugging Face's name of our `name`."""
    if name.startswith("head.projection."):
        return name.replace("head.projection", "classifier.1")
    _, _, number, rest = name.split(".", 3)
    if number == "0":
        return f"resnet.embedder.embedder.{rest.removeprefix('0.')}".replace("norm.", "normalization.")
    stage, layer = 0, int(number) - 1
    while layer >= depths[stage]:
        layer -= depths[stage]
        stage += 1
    rest = rest.replace("body.", "layer.").replace("norm.", "normalization.")
    return f"resnet.encoder.stages.{stage}.layers.{layer}.{rest}"


@pytest.mark.parametrize(("network", "kind"), [("resnet-18", "basic"), ("resnet-50", "bottleneck")])
def test_logits_equal_hugging_faces(network, kind):
    """In evaluation far from the first weights and statistics; in training the statistics gathered, too."""
    transformers = pytest.importorskip("transformers")
    recipe = NETWORKS[network]
    config = transformers.ResNetConfig(
        hidden_sizes=list(recipe.widths), depths=list(recipe.depths), layer_type=kind, num_labels=7
    )
    peer = transformers.ResNetForImageClassification(config).double()
    for name, part in peer.state_dict().items():
        if part.dim() == 1:  # norms' gains and variances near one, so that numbers keep their size
            torch.nn.init.uniform_(part, *((0.5, 1.5) if name.endswith(("weight", "var")) else (-0.5, 0.5)))
    model = made(network, 64, 7).double()
    weights = peer.state_dict()
    assert {theirs(name, recipe.depths) for name in model.state_dict()} == weights.keys()
    model.load_state_dict({name: weights[theirs(name, recipe.depths)] for name in model.state_dict()})
    images = torch.randn(2, 3, 64, 64, dtype=torch.float64)
    for training in (False, True):
        expected = peer.train(training)(images).logits
        found = logits(model.train(training), images)
        assert expected.std() > 0.1
        torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)
    for name, part in model.state_dict().items():
        torch.testing.assert_close(part, peer.state_dict()[theirs(name, recipe.depths)], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("network", ["resnet-20", "plain-20", "resnet-18", "resnet-50", "lenet-5"])
def test_reset_parameters_fills_everything(network):
    with torch.device("meta"):
        model = made(network, 32, 10)
    model = model.to_empty(device="cpu")
    with torch.no_grad():
        for part in (*model.parameters(), *model.buffers()):
            part.fill_(torch.nan if part.is_floating_point() else -1)
    for part in model.modules():
        if hasattr(part, "reset_parameters"):
            part.reset_parameters()
    assert all(part.isfinite().all() for part in (*model.parameters(), *model.buffers()))
    first = F.cross_entropy(logits(model, torch.randn(10, model.encoder.channels, 32, 32)), torch.arange(10))
    assert abs(float(first.detach()) / math.log(10) - 1) < 0.3


@pytest.mark.parametrize(
    "recipe",
    [
        *(
            ResidualNetwork(basic, (1, 1), (8, 16), shortcut, first=8, pooled=False)
            for shortcut in ("padded", "projection", "none")
        ),
        StraightNetwork((Layer(8), Layer(16, pool=2)), hidden=(20,), side=2),
    ],
)
def test_a_small_one_learns_by_heart(recipe):
    encoder = recipe.encoder(3, "published")
    model = Encoded(encoder, recipe.head(encoder, 8, 3, 0.0))
    images, labels = torch.randn(12, 3, 8, 8), torch.arange(12) % 3
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(30):
        optimizer.zero_grad()
        loss = F.cross_entropy(logits(model, images), labels)
        loss.backward()
        if not step:
            assert all(parameter.grad.ne(0).any() for parameter in model.parameters())
        optimizer.step()
    assert float(loss.detach()) < 0.1
    assert logits(model.eval(), images).argmax(1).tolist() == labels.tolist()
