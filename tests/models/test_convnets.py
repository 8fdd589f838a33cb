"""Named networks have the published numbers of parameters and Hugging Face's outputs, and learn."""

import math
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from foveal.layers.residual import basic
from foveal.models.convnets import NETWORKS, ResidualNetwork, image_encoder, image_head
from foveal.models.encoder import Encoded

PROJECTIONS = 64 * 128 + 128 * 256 + 256 * 512 + 2 * (128 + 256 + 512)
PUBLISHED = {
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
    encoder = image_encoder(network, 3, stem)
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
    """Convolutions and the projection; shortcuts' are not counted."""
    for network in NETWORKS:
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
    ],
)
def test_grids(network, stem, size, grid):
    with torch.device("meta"):
        memory, _ = image_encoder(network, 1, stem)(torch.empty(2, 1, size, size))
    assert memory.segments[0].grid == (grid, grid)
    assert memory.vectors.shape[1] == grid**2


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


@pytest.mark.parametrize("network", ["resnet-20", "plain-20", "resnet-18", "resnet-50"])
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
    first = cross_entropy(logits(model, torch.randn(10, 3, 32, 32)), torch.arange(10))
    assert abs(float(first.detach()) / math.log(10) - 1) < 0.3


@pytest.mark.parametrize("shortcut", ["padded", "projection", "none"])
def test_a_small_one_learns_by_heart(shortcut):
    recipe = ResidualNetwork(basic, (1, 1), (8, 16), shortcut, first=8, pooled=False)
    encoder = recipe.encoder(3, "published")
    model = Encoded(encoder, recipe.head(encoder, 8, 3, 0.0))
    images, labels = torch.randn(12, 3, 8, 8), torch.arange(12) % 3
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(30):
        optimizer.zero_grad()
        loss = cross_entropy(logits(model, images), labels)
        loss.backward()
        optimizer.step()
    assert float(loss.detach()) < 0.1
    assert logits(model.eval(), images).argmax(1).tolist() == labels.tolist()
