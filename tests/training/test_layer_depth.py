"""Rates that fall with the depth below the head, and parameters that stay as they are."""

import pytest
import torch
from torch import Tensor

from foveal.config import EncoderConfig, OptimizerConfig
from foveal.heads.classification import ClassificationHead
from foveal.models.encoder import EncoderWithHead, patch_encoder
from foveal.models.image_networks import image_encoder
from foveal.training.layer_depth import layer_depths
from foveal.training.optim import Optimizer
from tests.support.text_classifier import D, preset_model, small_text_classifier

RATE = 0.01


def moved(name: str, layer_decay: float, network: EncoderWithHead) -> dict[str, Tensor]:
    """How far one step takes each parameter, with a gradient of ones."""
    before = {key: weight.detach().clone() for key, weight in network.named_parameters()}
    optimizer = Optimizer(network, OptimizerConfig(name=name, clip_norm=0.0, layer_decay=layer_decay))
    for weight in network.parameters():
        weight.grad = torch.ones_like(weight)
    optimizer.step(RATE, optimizer.gradient_stats()[0])
    return {key: (weight - before[key]).abs().max() for key, weight in network.named_parameters()}


@pytest.mark.parametrize("name", ["sgd", "adamw", "muon"])
def test_rates_fall_with_depth(name: str) -> None:
    """ELECTRA's and BEiT's rule: decay^k, k = 0 at the head, 1 at the last block, one more at each below."""
    torch.manual_seed(0)
    whole, fallen = moved(name, 1.0, small_text_classifier()), moved(name, 0.5, small_text_classifier())
    for key in whole:
        depth = 4 if "table" in key else 3 - int(key.split(".")[3]) if "blocks" in key else 0
        torch.testing.assert_close(fallen[key], whole[key] * 0.5**depth, rtol=1e-3, atol=0)


def test_what_sees_images_has_depths_too() -> None:
    """A residual network's first convolution, and the map of patches, are the lowest."""
    residual = EncoderWithHead(image_encoder("resnet-20", 3, "published"), ClassificationHead(64, 2))
    found = layer_depths(residual)
    for name, depth in found.items():
        assert depth == (0 if name.startswith("head.") else 10 - int(name.split(".")[2])), name
    settings = {"mixers": "attention", "layers": 3, "width": D, "positions": {"kind": "learned"}}
    sizes = EncoderConfig.model_validate({"kind": "patches", **settings, "pooling": "cls"})
    patches = EncoderWithHead(patch_encoder(sizes, 3, 8), ClassificationHead(D, 2))
    found = layer_depths(patches)
    for name, depth in found.items():
        low = name.startswith(("encoder.projection", "encoder.token", "encoder.stack.positioned"))
        assert depth == (4 if low else 3 - int(name.split(".")[3]) if "blocks" in name else 0), name


def test_readers_are_below_the_stack_that_they_feed() -> None:
    """Two joint blocks over a network of ten and a stack of one; two over time over a network of two."""
    blocks = {
        "vqa": {"encoder.stack": 2, "encoder.parts.source": 2 + 10, "encoder.parts.question.stack": 2 + 1},
        "frame-tagging": {"encoder.stack": 2, "encoder.network": 2 + 2},
    }
    before = {
        "vqa": {"encoder.maps": 3, "encoder.stack.positioned": 3, "encoder.parts.question.embedding": 4},
        "frame-tagging": {"encoder.projection": 3},
    }
    for preset, highest in blocks.items():
        found = layer_depths(preset_model(preset))
        for name, depth in found.items():
            where, within, place = name.partition(".blocks.")
            right = highest[where] - int(place.split(".")[0]) if within and where in highest else 0
            first = (depth for start, depth in before[preset].items() if name.startswith(start))
            assert depth == next(first, right), name


def test_frozen_parameters_stay() -> None:
    network = small_text_classifier()
    network.encoder.requires_grad_(False)
    found = moved("adamw", 0.5, network)
    for key, distance in found.items():
        assert (distance > 0) == key.startswith("head."), key
