"""A ConvNeXt's folder and our network give the same logits; what is not ours is told."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import foveal
from foveal.core.errors import UserError
from foveal.interop.huggingface.convnext import read_convnext
from foveal.models.depthwise_networks import ConvNeXt
from foveal.models.network_registry import NETWORKS
from foveal.store.sealed import load_weights
from foveal.tasks.import_run import import_run
from tests.support.named_networks import logits, make_network

DEPTHS, WIDTHS = (2, 1, 3, 1), (6, 8, 10, 12)


@pytest.fixture
def small(own_registries: None) -> None:
    """A network of ours that is as small."""
    NETWORKS.add("convnext-small", ConvNeXt(DEPTHS, WIDTHS), "notebook")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One far from its first weights; its last norm has their usual epsilon, 1e-12."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = transformers.ConvNextConfig(
        hidden_sizes=list(WIDTHS), depths=list(DEPTHS), id2label={0: "cat", 1: "dog", 2: "crane"}
    )
    model = transformers.ConvNextForImageClassification(config)
    for part in model.parameters():
        nn.init.uniform_(part, -0.8, 0.8)
    path = tmp_path_factory.mktemp("models") / "convnext"
    model.save_pretrained(path)
    seen = {"image_mean": [0.5, 0.25, 0.5], "image_std": [0.25, 0.5, 0.5], "size": {"shortest_edge": 64}}
    (path / "preprocessor_config.json").write_text(json.dumps(seen))
    return path


@torch.no_grad()
def test_logits_are_the_same(folder: Path, small: None) -> None:
    transformers = pytest.importorskip("transformers")
    found = read_convnext(folder)
    assert (found.name, found.channels, found.labels) == ("convnext-small", 3, ("cat", "dog", "crane"))
    model = make_network(found.name, 64, 3).eval()
    load_weights(model, found.tensors, str(folder))
    images = torch.randn(2, 3, 64, 64)
    expected = transformers.ConvNextForImageClassification.from_pretrained(folder).eval()(images).logits
    assert expected.std() > 0.1
    torch.testing.assert_close(logits(model, images), expected, rtol=1e-4, atol=1e-4)


def test_a_folder_becomes_a_run(folder: Path, tmp_path: Path, small: None) -> None:
    import_run(folder, tmp_path / "run", print)
    loaded = foveal.load(tmp_path / "run")
    weights = read_convnext(folder).tensors
    assert all(torch.equal(tensor, weights[name]) for name, tensor in loaded.model.state_dict().items())
    assert loaded.config.model.encoder.network == "convnext-small"
    assert loaded.processor.source.size == loaded.config.data.image.size == 64


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"hidden_act": "relu"}, "hidden_act='relu': Foveal supports only gelu"),
        ({"patch_size": 2}, "patch_size=2: Foveal supports only 4"),
        ({"layer_norm_eps": 1e-5}, "layer_norm_eps=1e-05: Foveal supports only 1e-06"),
        ({"depths": [1, 1, 1, 1]}, r"depths=\[1, 1, 1, 1\]: .* none of Foveal's networks"),
        ({"hidden_sizes": "wide"}, "none of Foveal's networks"),
        ({"num_channels": 1}, r"patch_embeddings.weight is \[6, 3, 4, 4\], not \[6, 1, 4, 4\]"),
    ],
)
def test_what_is_not_ours_is_told(
    folder: Path, tmp_path: Path, small: None, settings: dict[str, Any], why: str
) -> None:
    (tmp_path / "model.safetensors").symlink_to(folder / "model.safetensors")
    content = json.loads((folder / "config.json").read_text()) | settings
    (tmp_path / "config.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match=why):
        read_convnext(tmp_path)
