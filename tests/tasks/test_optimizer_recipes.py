"""An optimizer that a user names alone brings a learning rate that suits it."""

import tomllib
from pathlib import Path
from typing import get_args

import pytest

from foveal.config import OptimizerConfig
from foveal.tasks.recipes import USUAL_RATES, optimizer_recipe
from tests.support.command_line import succeed
from tests.support.labeled_images import write_images


def test_every_optimizer_has_a_usual_rate() -> None:
    assert USUAL_RATES.keys() == {*get_args(OptimizerConfig.model_fields["name"].annotation)}


@pytest.mark.parametrize(
    ("given", "lr", "decay"),
    [
        ("optimizer.name=sgd", 0.4, 5e-4),
        ("optimizer.name=adamw", 2e-3, 5e-4),
        ("optimizer.name=momentum", 0.1, 5e-4),
        ("optimizer.name=sgd optimizer.lr=0.3", 0.3, 5e-4),
        ("model.encoder.network=mlp optimizer.name=momentum", 0.05, 0),
        ("model.encoder.network=mlp optimizer.name=adam optimizer.weight_decay=0.1", 1e-3, 0.1),
        ("--model mlp optimizer.name=sgd", 0.2, 0),
        ("--model vit optimizer.name=adamw", 1e-3, 0.05),
        ("--model vit optimizer.name=sgd", 0.2, 0),
    ],
)
def test_the_rate_of_a_named_optimizer(
    given: str, lr: float, decay: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_images(count=10)
    arguments = given if "--model" in given else f"--model image-classification {given}"
    told = succeed("train", "squares", *arguments.split(), "--print-config")
    optimizer = tomllib.loads(told.out)["optimizer"]
    assert (optimizer["lr"], optimizer["weight_decay"]) == (pytest.approx(lr), decay)


def test_the_line_names_what_the_user_did_not_set() -> None:
    lines: list[str] = []
    base = {"optimizer": {"name": "muon", "lr": 0.012, "weight_decay": 0.8}}
    optimizer_recipe(base, ["optimizer.name=momentum", "optimizer.weight_decay=1e-4"], lines.append)
    assert lines == ["optimizer.name=momentum trains with optimizer.lr=0.15, unless you set others"]
    assert optimizer_recipe(base, ["model.width=9"], lines.append) == []
    assert optimizer_recipe(base, ["optimizer.name=muon"], lines.append) == []
    assert len(lines) == 1
