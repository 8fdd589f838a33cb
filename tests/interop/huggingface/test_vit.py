"""A ViT's folder and our encoder of patches give the same logits; what is not ours, or damaged, is told."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import foveal
from foveal.config import ModelConfig
from foveal.core.errors import UserError
from foveal.encoders.patches import interpolate_positions
from foveal.heads.classification import ClassificationHead
from foveal.interop.huggingface.hf_config import HFConfig
from foveal.interop.huggingface.image_processor import read_image_processor
from foveal.interop.huggingface.vit import POSITIONS, from_hf_config, read_vit
from foveal.models.encoder import EncoderWithHead, patch_encoder
from foveal.models.mixer_settings import resolve_mixer_settings
from foveal.models.vit import VisionTransformer
from foveal.store.sealed import load_weights
from foveal.tasks.import_run import import_run
from tests.support.named_networks import logits

SEEN = {"image_mean": [0.5], "image_std": [0.25], "size": {"height": 24, "width": 24}, "do_rescale": True}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three layers far from their first weights."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = transformers.ViTConfig(
        hidden_size=12,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=20,
        image_size=24,
        patch_size=8,
        num_channels=1,
        id2label=dict(enumerate(("crane", "cat", "crane"))),
    )
    model = transformers.ViTForImageClassification(config)
    for part in model.parameters():
        nn.init.uniform_(part, -0.6, 0.6)
    path = tmp_path_factory.mktemp("models") / "vit"
    model.save_pretrained(path)
    (path / "preprocessor_config.json").write_text(json.dumps(SEEN))
    return path


@pytest.fixture
def changed(folder: Path, tmp_path: Path) -> Any:
    """The folder with other settings, and without some tensors."""

    def change(*missing: str, **settings: Any) -> Path:
        path = tmp_path / "vit"
        path.mkdir()
        tensors = load_file(folder / "model.safetensors")
        kept = {name: tensor for name, tensor in tensors.items() if name not in missing}
        save_file(kept, path / "model.safetensors")
        config = json.loads((folder / "config.json").read_text()) | settings
        (path / "config.json").write_text(json.dumps(config))
        return path

    return change


@torch.no_grad()
def test_logits_are_the_same(folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    found = read_vit(folder)
    assert (found.channels, found.size, found.labels) == (1, 24, ("crane (0)", "cat", "crane (2)"))
    encoder = patch_encoder(found.model.encoder, 1, 24)
    model = EncoderWithHead(encoder, ClassificationHead(12, 3, found.model.head_pooling)).eval()
    load_weights(model, found.tensors, str(folder))
    images = torch.randn(4, 1, 24, 24)
    peer = transformers.ViTForImageClassification.from_pretrained(folder).eval()
    expected = peer(images, output_hidden_states=True)
    assert expected.logits.std() > 0.1
    torch.testing.assert_close(logits(model, images), expected.logits, rtol=1e-4, atol=1e-4)
    memory, _ = model.encoder(images)
    last = peer.vit.layernorm(expected.hidden_states[-1])
    torch.testing.assert_close(memory.vectors, last[:, 1:], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(memory.summary, last[:, 0], rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_positions_between_are_the_same(folder: Path) -> None:
    """For images of another size."""
    transformers = pytest.importorskip("transformers")
    found = read_vit(folder)
    encoder = patch_encoder(found.model.encoder, 1, 40)
    model = EncoderWithHead(encoder, ClassificationHead(12, 3, found.model.head_pooling)).eval()
    load_weights(
        model,
        found.tensors | {POSITIONS: interpolate_positions(found.tensors[POSITIONS], 26, 1)},
        str(folder),
    )
    images = torch.randn(4, 1, 40, 40)
    peer = transformers.ViTForImageClassification.from_pretrained(folder).eval()
    expected = peer(images, interpolate_pos_encoding=True).logits
    torch.testing.assert_close(logits(model, images), expected, rtol=1e-4, atol=1e-4)


def test_a_folder_becomes_a_run(folder: Path, tmp_path: Path) -> None:
    import_run(folder, tmp_path / "run", print)
    loaded = foveal.load(tmp_path / "run")
    weights = read_vit(folder).tensors
    assert all(torch.equal(tensor, weights[name]) for name, tensor in loaded.model.state_dict().items())
    assert (loaded.config.data.image.size, loaded.config.data.image.channels) == (24, 1)
    assert loaded.processor.target.labels == ("crane (0)", "cat", "crane (2)")


def test_a_named_one_is_theirs_with_the_published_epsilon() -> None:
    """A name stands for the settings that are read from theirs."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 192, "num_attention_heads": 3, "intermediate_size": 768}
    config = transformers.ViTConfig(**sizes, layer_norm_eps=1e-6)
    found = from_hf_config(HFConfig(config.to_dict(), Path("config.json")))
    named = ModelConfig(encoder=VisionTransformer(192, 3).config(16), head_pooling="encoder")
    assert found == resolve_mixer_settings(named)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"qkv_bias": False}, "qkv_bias=False: Foveal supports only True"),
        ({"hidden_act": "silu"}, "hidden_act='silu': Foveal supports only"),
        ({"image_size": [24, 48]}, r"image_size=\[24, 48\]: expected a whole number"),
        ({"image_size": 25}, "config.json: images of 25x25 are not filled by patches of 8"),
        ({"num_attention_heads": 5}, "config.json: .*12 is not a multiple of .*5"),
        ({"num_hidden_layers": 1000}, "1000 layers, but .* has 56 tensors"),
        ({"image_size": 32}, r"position_embeddings is \[1, 10, 12\], not \[1, 17, 12\]"),
        ({"id2label": {"0": "a", "1": "b"}}, r"classifier.weight is \[3, 12\], not \[2, 12\]"),
        ({"layer_norm_eps": "small"}, "layer_norm_eps='small': expected a number"),
    ],
)
def test_what_is_not_ours_is_told(changed: Any, settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        read_vit(changed(**settings))


def test_a_model_without_its_classifier_is_told(changed: Any) -> None:
    with pytest.raises(UserError, match=r"no classifier.weight; no classifier.bias"):
        read_vit(changed("classifier.weight", "classifier.bias"))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"size": 32}, "size=32: the positions of its model are for images of 24 pixels"),
        ({"do_normalize": False}, "do_normalize=False: Foveal supports only True"),
    ],
)
def test_what_it_sees_must_fit_its_positions(
    folder: Path, tmp_path: Path, settings: dict[str, Any], reason: str
) -> None:
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(SEEN | settings))
    with pytest.raises(UserError, match=reason):
        read_image_processor(tmp_path, read_vit(folder))
