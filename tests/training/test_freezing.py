"""What is frozen stays bit for bit, running statistics too; the rest moves."""

import pytest
import torch
from torch import Tensor, nn

from foveal.config import OptimizerConfig
from foveal.config.sections import FreezeName
from foveal.core.errors import UserError
from foveal.heads.classification import ClassificationHead
from foveal.models.encoder import EncoderWithHead
from foveal.models.image_networks import image_encoder
from foveal.objectives.selective import ModelWithProxy
from foveal.training.freezing import freeze
from foveal.training.optim import Optimizer
from tests.support.text_classifier import preset_model, small_text_classifier


def network() -> EncoderWithHead:
    return EncoderWithHead(image_encoder("resnet-20", 3, "published"), ClassificationHead(64, 2))


def changed(model: EncoderWithHead, what: FreezeName, source: Tensor) -> set[str]:
    """What a step on a batch changes of parameters and statistics."""
    freeze(model, what)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = Optimizer(model, OptimizerConfig(name="sgd", weight_decay=0.1))
    model.train()
    features, _ = model.head(model.encoder(source, None)[0])
    model.head.project(features).logsumexp(1).sum().backward()
    optimizer.step(0.1, optimizer.gradient_stats()[0])
    return {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}


def everything(model: nn.Module) -> set[str]:
    return set(model.state_dict())


@pytest.mark.parametrize("what", ["none", "norms", "below-last-block", "encoder"])
def test_of_a_network_for_images(what: FreezeName) -> None:
    """Block 9 is the last of resnet-20; every name of a norm's has `norm` in it."""
    torch.manual_seed(0)
    made = network()
    head = {name for name in everything(made) if name.startswith("head.")}
    last = {name for name in everything(made) if name.startswith("encoder.blocks.9.")}
    norms = {name for name in everything(made) if ".norm." in name}
    right = {
        "none": everything(made),
        "norms": everything(made) - norms,
        "below-last-block": head | last - norms,
        "encoder": head,
    }
    assert changed(made, what, torch.randn(8, 3, 32, 32)) == right[what]


def test_a_proxy_beside_learns() -> None:
    """It may be new, and its norms have seen nothing."""
    made = ModelWithProxy(network(), network())
    freeze(made, "below-last-block")
    assert {name for name, weight in made.named_parameters() if not weight.requires_grad}
    assert all(weight.requires_grad for weight in made.proxy.parameters())


def test_of_a_stack_over_texts() -> None:
    """The norm behind the last block goes with it."""
    torch.manual_seed(0)
    made = small_text_classifier()
    with torch.no_grad():
        made.head.projection.weight.normal_()
    found = changed(made, "below-last-block", torch.randint(5, (4, 7)))
    kept = {name for name in everything(made) if name.startswith(("encoder.embedding", "encoder.stack"))}
    last = {name for name in kept if "blocks.2." in name}
    assert found >= everything(made) - kept
    assert found & (kept - last) == set()
    assert found & last


@pytest.mark.parametrize("what", ["below-last-block", "encoder"])
def test_of_what_reads_questions_too_the_images_network_alone(what: FreezeName) -> None:
    """A run of images lends nothing else: what reads the questions is new, and is to be trained."""
    made = preset_model("vqa")
    freeze(made, what)
    frozen = {name for name, weight in made.named_parameters() if not weight.requires_grad}
    image = {name for name, _ in made.named_parameters() if name.startswith("encoder.parts.source.")}
    last = {name for name in image if ".blocks.9." in name and ".norm." not in name}
    assert last
    assert frozen == (image if what == "encoder" else image - last)


def test_what_is_not_there() -> None:
    with pytest.raises(UserError, match="no batch norm"):
        freeze(small_text_classifier(), "norms")
    with pytest.raises(UserError, match="this model has no encoder"):
        freeze(nn.Linear(2, 2), "encoder")
    with pytest.raises(UserError, match="no layers below its last block"):
        freeze(nn.Linear(2, 2), "below-last-block")
