"""Models alone: what they read and return, their weights, and errors in one line."""

import random
from typing import Any

import numpy as np
import pytest
import torch

import foveal
from foveal.api.create_model import generators_kept
from foveal.data.text.tokenizer_base import VocabularySize
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model

IMAGES, TOKENS = torch.randn(2, 3, 32, 32), torch.tensor([[1, 2, 3, 4], [4, 3, 2, 1]])
SERIES, LENGTHS = torch.randn(2, 6, 4), torch.tensor([6, 3])
SMALL: dict[str, Any] = {"model.width": 16, "model.layers": 1}
SMALL_ENCODER: dict[str, Any] = {"model.encoder.width": 16, "model.encoder.layers": 1}


@pytest.mark.parametrize(
    ("name", "sizes", "inputs", "shape"),
    [
        ("resnet-18", {"classes": 10}, (IMAGES,), (2, 10)),
        ("lenet-5", {}, (IMAGES[:, :1],), (2, 10)),
        ("resnet-20", {"channels": 1, "classes": 3}, (IMAGES[:, :1],), (2, 3)),
        ("vit-ti", {"size": 32, "classes": 3}, (IMAGES,), (2, 3)),
        ("airbench96", {"classes": 3}, (IMAGES,), (2, 3)),
        ("image-classification", {"classes": 3}, (IMAGES,), (2, 3)),
        ("lstm", {"vocabulary": 7, "settings": SMALL}, (TOKENS,), (2, 4, 7)),
        ("attention", {"vocabulary": 7, "settings": SMALL}, (TOKENS, LENGTHS - 2), (2, 4, 7)),
        ("masked-lm", {"vocabulary": 7, "settings": SMALL_ENCODER}, (TOKENS,), (2, 4, 10)),
        (
            "permutation-lm",
            {"vocabulary": 7, "settings": SMALL},
            (TOKENS, TOKENS, TOKENS[:, :3] - 1),
            (2, 3, 10),
        ),
        ("text-classification", {"vocabulary": 7, "classes": 3}, (TOKENS, LENGTHS - 2), (2, 3)),
        ("tagging", {"vocabulary": 7, "classes": 3, "settings": SMALL_ENCODER}, (TOKENS,), (2, 4, 3)),
        ("series-classification", {"channels": 4, "classes": np.int64(3)}, (SERIES, LENGTHS), (2, 3)),
        ("series-tagging", {"channels": 4, "classes": 3}, (SERIES, LENGTHS), (2, 6, 3)),
        ("audio-classification", {"classes": 3}, (torch.randn(2, 16, 80),), (2, 3)),
        (
            "video-classification",
            {"classes": 3, "channels": 3},
            (IMAGES[:, None].repeat(1, 2, 1, 1, 1),),
            (2, 3),
        ),
        ("transduction", {"vocabulary": 7}, (TOKENS, LENGTHS - 2, TOKENS), (2, 4, 10)),
    ],
)
def test_logits(
    name: str, sizes: dict[str, Any], inputs: tuple[torch.Tensor, ...], shape: tuple[int, ...]
) -> None:
    assert name in foveal.list_models()
    model = foveal.create_model(name, **sizes)
    assert model.training
    with torch.no_grad():
        logits = model(*inputs)
    assert logits.shape == shape
    assert logits.isfinite().all()


def test_weights_are_those_of_a_run_with_the_seed() -> None:
    settings = {**SMALL, "model.residual": False}
    model = foveal.create_model("gru", vocabulary=9, seed=3, settings=settings)
    overrides = [f"{key}={str(value).lower()}" for key, value in settings.items()]
    task = task_of(load_config("gru", [*overrides, "training.seed=3"])).bind(VocabularySize(9))
    weights = build_model(task, torch.device("cpu")).state_dict()
    assert model.get_submodule("head").state_dict().keys() == weights.keys()
    for name, weight in weights.items():
        assert torch.equal(model.get_parameter(f"head.{name}"), weight), name
    other = foveal.create_model("gru", vocabulary=9, seed=4, settings=settings)
    assert not torch.equal(other.get_parameter("head.projection.weight"), weights["projection.weight"])


def test_the_global_generators_are_left_as_they_are() -> None:
    def numbers() -> tuple[float, float, float]:
        return random.random(), float(np.random.rand()), float(torch.rand(()))

    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    with generators_kept():  # not around create_model, since beartype draws from Python's generator
        first = numbers()
    assert numbers() == first
    torch.manual_seed(1)
    foveal.create_model("linear", size=4)
    assert float(torch.rand(())) == first[2]


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("resnet18", {}, "unknown preset or network 'resnet18'; did you mean 'resnet-18'?"),
        ("images", {}, "unknown preset or network|the preset images is now image-classification"),
        ("lstm", {}, r"the number of tokens: foveal.create_model\('lstm', vocabulary=N\)"),
        ("tagging", {}, r"the number of tokens and the number of classes: .*, vocabulary=N, classes=N\)"),
        ("lstm", {"vocabulary": 0}, "vocabulary=0: expected a whole number from 1 on"),
        ("lstm", {"vocabulary": True}, "vocabulary=True: expected a whole number"),
        ("lstm", {"vocabulary": 5, "classes": 3}, "classes=3: a model of lstm has no such size"),
        ("resnet-18", {"vocabulary": 5}, "vocabulary=5: a model of resnet-18 has no such size"),
        ("vqa", {}, r"made from data alone: foveal.train\(data, model='vqa'\)"),
        ("glimpses", {"classes": 3}, "made from data alone"),
        ("vit-ti", {"size": 30}, "30x30 are not filled by patches"),
        ("lstm", {"vocabulary": 5, "settings": {"model.widht": 3}}, "did you mean 'model.width'"),
        ("lstm", {"vocabulary": 5, "settings": {"lr": 3}}, 'did you mean settings={"optimizer.lr": VALUE}'),
        ("resnet-18", {"pretrained": True}, "no published weights of that name"),
        ("minlm", {"pretrained": True}, "did you mean 'minilm'"),
    ],
)
def test_errors(name: str, sizes: dict[str, Any], message: str) -> None:
    with pytest.raises(foveal.UserError, match=message) as error:
        foveal.create_model(name, **sizes)
    assert "\n" not in str(error.value)


def test_inputs_that_do_not_fit_the_head() -> None:
    translation = foveal.create_model("transduction", vocabulary=7)
    with pytest.raises(ValueError, match="a decoder reads tokens"):
        translation(TOKENS)
    with pytest.raises(ValueError, match="reads no tokens"):
        foveal.create_model("linear", size=32)(IMAGES, None, TOKENS)


def test_list() -> None:
    assert foveal.list_models("resnet-1*") == ["resnet-101", "resnet-110", "resnet-152", "resnet-18"]
    assert {"lstm", "vit-b", "minirocket", "translation"} <= {*foveal.list_models()}
    assert not {"vqa", "draw", "navigation", "word-tagging"} & {*foveal.list_models()}
    assert foveal.list_models("*", pretrained=True) == [
        "all-minilm-l6-v2",
        "efficientnet-lite0",
        "gemma3",
        "gemma3-270m",
        "lite0",
        "minilm",
    ]
    assert foveal.list_models("nothing*") == []
