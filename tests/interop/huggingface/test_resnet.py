"""A ResNet's folder and our network give the same logits; what is not ours, or damaged, is told."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import foveal
from foveal.core.errors import UserError
from foveal.interop.huggingface.image_processor import read_image_processor
from foveal.interop.huggingface.resnet import read_resnet
from foveal.models.encoder import EncoderWithHead
from foveal.models.image_networks import image_encoder, image_head
from foveal.store.sealed import load_weights
from foveal.tasks.import_run import import_run

LABELS = ("crane", "cat", "crane")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A resnet-18 far from its first weights and statistics."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = transformers.ResNetConfig(
        hidden_sizes=[64, 128, 256, 512],
        depths=[2, 2, 2, 2],
        layer_type="basic",
        num_channels=1,
        id2label=dict(enumerate(LABELS)),
    )
    model = transformers.ResNetForImageClassification(config)
    for name, part in model.state_dict().items():
        if part.dim() == 1:
            nn.init.uniform_(part, *((0.5, 1.5) if name.endswith(("weight", "var")) else (-0.5, 0.5)))
    path = tmp_path_factory.mktemp("models") / "resnet"
    model.save_pretrained(path)
    seen = {
        "image_mean": [0.25],
        "image_std": [0.5],
        "size": {"shortest_edge": 64},
        "rescale_factor": 1 / 255,
    }
    (path / "preprocessor_config.json").write_text(json.dumps(seen))
    return path


@pytest.fixture
def changed(folder: Path, tmp_path: Path) -> Any:
    """The folder with other settings."""

    def change(**settings: Any) -> Path:
        path = tmp_path / "resnet"
        path.mkdir()
        (path / "model.safetensors").symlink_to(folder / "model.safetensors")
        config = json.loads((folder / "config.json").read_text()) | settings
        (path / "config.json").write_text(json.dumps(config))
        return path

    return change


@torch.no_grad()
def test_logits_are_the_same(folder):
    transformers = pytest.importorskip("transformers")
    found = read_resnet(folder)
    assert (found.name, found.channels) == ("resnet-18", 1)
    assert found.labels == ("crane (0)", "cat", "crane (2)")
    encoder = image_encoder(found.name, found.channels, "published")
    model = EncoderWithHead(encoder, image_head(found.name, encoder, 64, len(found.labels), 0.0)).eval()
    load_weights(model, found.tensors, str(folder))
    images = torch.randn(2, 1, 64, 64)
    memory, _ = model.encoder(images)
    features, _ = model.head(memory)
    peer = transformers.ResNetForImageClassification.from_pretrained(folder).eval()
    expected = peer(images).logits
    assert expected.std() > 0.1
    torch.testing.assert_close(model.head.project(features), expected, rtol=1e-4, atol=1e-4)


def test_a_folder_becomes_a_run(folder, tmp_path):
    """With labels, weights, and what it was trained to see."""
    import_run(folder, tmp_path / "run", print)
    loaded = foveal.load(tmp_path / "run")
    assert loaded.config.model.encoder.network == "resnet-18"
    assert loaded.processor.target.labels == ("crane (0)", "cat", "crane (2)")
    assert (loaded.config.data.image.size, loaded.config.data.image.channels) == (64, 1)
    levels = np.array([[0], [51], [255]], np.float32)
    expected = (levels / 255 - 0.25) / 0.5
    np.testing.assert_allclose(loaded.processor.source.statistics.standardize(levels), expected, rtol=1e-6)
    weights = read_resnet(folder).tensors
    assert all(torch.equal(tensor, weights[name]) for name, tensor in loaded.model.state_dict().items())


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"size": {"height": 64, "width": 32}}, "size=.* the side of a square"),
        ({"size": {"height": [], "width": []}}, "size=.* the side of a square"),
        ({"size": {}}, "size=.* the side of a square"),
        ({"size": "large"}, "size='large': expected the side"),
        ({"image_mean": [0.5, 0.5, 0.5]}, "image_mean=.* expected 1 numbers"),
        ({"image_std": [0.0]}, "image_std=.* between 0 and 1"),
        ({"rescale_factor": 1.0}, "rescale_factor=1.0: Foveal supports only 0.0039"),
        ({"image_std": None}, "image_std=.* between 0 and 1"),
    ],
)
def test_what_it_sees_is_told_to_be_wrong(folder, tmp_path, settings, why):
    content = json.loads((folder / "preprocessor_config.json").read_text()) | settings
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match=why):
        read_image_processor(tmp_path, read_resnet(folder))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"hidden_act": "gelu"}, "hidden_act='gelu': Foveal supports only relu"),
        ({"downsample_in_bottleneck": True}, "downsample_in_bottleneck=True: Foveal supports only False"),
        ({"downsample_in_first_stage": True}, "downsample_in_first_stage=True: Foveal supports only False"),
        ({"layer_type": "other"}, "layer_type='other': Foveal supports only basic, bottleneck"),
        ({"depths": [2, 2, 2]}, r"depths=\[2, 2, 2\]: .* none of Foveal's networks"),
        ({"depths": "deep"}, "depths='deep': .* none of Foveal's networks"),
        ({"embedding_size": 32}, "none of Foveal's networks"),
        ({"id2label": {"0": "a", "2": "b"}}, "id2label=.* a name for each class"),
        ({"id2label": {"0": "a"}}, "id2label=.* two or more"),
        ({"id2label": ["a", "b"]}, "id2label=.* a name for each class"),
        ({"id2label": {"0": "a", "1": 2}}, "id2label=.* a name for each class"),
        (
            {"id2label": {str(i): str(i) for i in range(4)}},
            r"classifier.1.weight is \[3, 512\], not \[4, 512\]",
        ),
        ({"depths": [3, 4, 6, 3]}, "no resnet.encoder.stages.0.layers.2"),
    ],
)
def test_what_is_not_ours_is_told(changed, settings, why):
    with pytest.raises(UserError, match=why):
        read_resnet(changed(**settings))


def test_a_folder_without_weights_is_told(folder, tmp_path):
    shutil.copy(folder / "config.json", tmp_path)
    with pytest.raises(UserError, match=r"it has no model.safetensors"):
        read_resnet(tmp_path)
