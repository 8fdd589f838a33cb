"""The setting for first weights: deviations by fans, what is touched and what is not."""

import math
from typing import Any

import pytest
import torch
from torch import nn

from foveal.config import ConfigError
from foveal.data.core.standardize import Statistics
from foveal.data.images.image_examples import ImageProcessor
from foveal.data.pairs.labels import LabelProcessor
from foveal.data.pairs.pair import PairProcessor
from foveal.layers.initialization import fan_in_and_fan_out, initialize
from foveal.layers.vision.whitening import WhiteningConv2d
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model
from tests.support.command_line import TINY_MODEL, run_command
from tests.support.trained_presets import trained_presets

RULES = {
    "0.01": lambda fan_in, fan_out: 0.01,
    "xavier": lambda fan_in, fan_out: math.sqrt(2 / (fan_in + fan_out)),
    "kaiming": lambda fan_in, fan_out: math.sqrt(2 / fan_in),
}


@pytest.mark.parametrize(
    ("layer", "fan_in", "fan_out"),
    [
        (nn.Linear(300, 200), 300, 200),
        (nn.Conv2d(20, 30, (3, 5)), 300, 450),
        (nn.Conv2d(20, 30, 3, groups=10), 18, 27),
        (nn.Conv1d(40, 60, 7), 280, 420),
    ],
)
@pytest.mark.parametrize("rule", RULES)
def test_deviations(layer, fan_in, fan_out, rule):
    """Against fans counted by hand, and torch's own."""
    assert fan_in_and_fan_out(layer) == (fan_in, fan_out)
    initialize(nn.Sequential(layer), rule, nn.Identity())
    weight, expected = layer.weight.detach(), RULES[rule](fan_in, fan_out)
    close = 4 / math.sqrt(2 * weight.numel())  # four deviations of an estimate
    assert float(weight.std()) == pytest.approx(expected, rel=close)
    assert abs(float(weight.mean())) < 4 * expected / math.sqrt(weight.numel())
    if rule == "kaiming":
        theirs = torch.empty_like(weight)
        nn.init.kaiming_normal_(theirs)
        assert float(theirs.std()) == pytest.approx(expected, rel=close)


def test_what_stays():
    """Biases, norms, tables, frozen weights, the projection to the outcomes."""
    last = nn.Linear(8, 3)
    parts = [
        nn.Embedding(5, 8),
        nn.LayerNorm(8),
        nn.BatchNorm2d(8),
        WhiteningConv2d(3, 2),
        nn.LSTM(8, 8),
        last,
    ]
    model: Any = nn.Sequential(nn.Linear(8, 8), *parts)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    initialize(model, "0.05", last)
    changed = [name for name, weight in model.state_dict().items() if not torch.equal(weight, before[name])]
    assert changed == ["0.weight"]
    initialize(model, "default", last)
    assert torch.equal(model[0].weight, model.state_dict()["0.weight"])


INPUTS = PairProcessor(ImageProcessor(Statistics((0.0,) * 3, (1.0,) * 3), 32), LabelProcessor(tuple("abcde")))


def first(rule: str, seed: int = 0, network: str = "mlp-10") -> Any:
    settings = [f"model.encoder.network={network}", f"model.initialization={rule}", f"training.seed={seed}"]
    return build_model(
        task_of(load_config("image-classification", settings)).bind(INPUTS), torch.device("cpu")
    )


def test_a_function_of_the_seed():
    weights = [first("xavier", seed, "lenet-5").head.hidden[0].weight for seed in (0, 0, 1)]
    assert torch.equal(*weights[:2])
    assert not torch.equal(*weights[1:])
    default = first("default", network="lenet-5")
    assert default.head.projection.weight.equal(first("0.01", network="lenet-5").head.projection.weight)


@pytest.mark.parametrize("rule", ["default", *RULES])
def test_the_first_loss_is_near_ln_c(rule):
    model = first(rule, network="resnet-20")
    memory, _ = model.encoder(torch.randn(16, 3, 32, 32))
    chances = model.head.project(model.head(memory)[0]).log_softmax(1)
    assert float(-chances.mean().detach()) == pytest.approx(math.log(5), abs=0.1)


@pytest.mark.parametrize("preset", trained_presets())
def test_every_model_has_a_last_layer_and_hidden_ones(preset):
    """Of every task: the setting finds what it must leave, and something to change."""
    model = task_of(load_config(preset)).example_model()
    last: Any = getattr(model, "head", model).projection
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    initialize(model, "0.05", last)
    same = {name for name, weight in model.named_parameters() if torch.equal(weight, before[name])}
    assert last.weight.equal(before[next(n for n, p in model.named_parameters() if p is last.weight)])
    assert {name for name in before if name.endswith("bias")} <= same
    kinds = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d
    plain = [m for m in model.modules() if isinstance(m, kinds) and m is not last]
    assert len(before) - len(same) == sum(m.weight.requires_grad for m in plain)


def test_nonsense_is_told():
    for rule in ("xavir", "-1", "0", "nan", "inf"):
        with pytest.raises(
            ConfigError, match=r"model\.initialization=.*: expected default, xavier, kaiming or"
        ):
            load_config("image-classification", [f"model.initialization={rule}"])
    assert load_config("image-classification", ["model.initialization=0.01"]).model.initialization == "0.01"


def test_a_rule_for_layers_that_the_model_lacks_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("a man rides the horse.\nthe dog sees a man.\n" * 60)
    trained = ("train", "notes.txt", *TINY_MODEL, "--budget", "1steps", "model.initialization=0.5")
    refused = run_command(*trained, "--model", "lstm")
    assert refused.code == 2
    assert "model.initialization=0.5: the model has no linear layers or convolutions" in refused.last
    assert not (tmp_path / "runs").exists()
    assert run_command(*trained, "--model", "attention").code == 0
