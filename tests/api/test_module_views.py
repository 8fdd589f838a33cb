"""Views of a run of `foveal.Trainer`: curves without its code, the module on a validation batch."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import foveal
from foveal.api.page.view_requests import ViewRequests
from foveal.core.errors import UserError
from foveal.store.sealed import open_tensors
from tests.support.command_line import refuse, succeed
from tests.support.fixtures import quick_disk
from tests.support.module_training import BATCH, Net, batches, loss, make_net, valid

__all__ = ["quick_disk"]
VIEWS = ["activations", "curves", "model-map", "updates"]


@pytest.fixture(autouse=True)
def no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than training."""
    monkeypatch.setattr("foveal.api.own_module.trainer.write_curves", lambda folder, name: None)


def train(module: Any = make_net, held_out: Any = valid) -> Any:
    return foveal.Trainer(module, loss, batches(), held_out, budget="9steps", run="run").run()


def listed(*options: str) -> tuple[list[str], dict[str, str]]:
    """Return the names of the views that fit, and why the others do not."""
    found = json.loads(succeed("inspect", "run", *options, "--json").out)
    return [view["view"] for view in found["views"]], found["others"]


def payload(*arguments: str) -> Any:
    return json.loads(succeed("inspect", "run", *arguments, "--trust-plugin", "--json").out)


def test_curves_need_no_code() -> None:
    run = train()
    fitting, others = listed()
    assert fitting == ["curves"]
    assert all(
        why.endswith("give --trust-plugin to run it") for name, why in others.items() if name != "samples"
    )
    shown = json.loads(succeed("inspect", "run", "curves", "--json").out)
    drawn = shown["panels"][0]["series"][0]
    assert shown["view"] == "curves"
    assert len(drawn["x"]) == len([row for row in run.metrics if row["kind"] == "step"])
    assert "this runs code, tests.support.module_training:make_net" in refuse("inspect", "run", "updates")


def test_the_page_lists_the_same_views() -> None:
    train()
    answer = ViewRequests("cpu").list_views(Path("run"), None)
    assert [view["name"] for view in answer["views"]] == listed()[0]
    assert answer["first"] == "curves"


def test_trusted_code_is_run_on_the_first_validation_batch() -> None:
    run = train()
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    fitting, others = listed("--trust-plugin")
    assert fitting == VIEWS
    assert not any("trust" in why for why in others.values())
    told = succeed("inspect", "run", "model-map", "--trust-plugin", "--json")
    assert "shown is the first validation batch" in told.err
    boxes = {box["name"]: box for box in json.loads(told.out)["boxes"]}
    assert boxes["first"]["parameters"] == 3 * 6 + 6
    assert boxes["first"]["multiply_adds"] == BATCH * 3 * 6
    assert boxes["last"]["shape"] == [2]
    layers = {row["layer"]: row for row in payload("updates")["updates"]["step 9"]}
    (newest,) = Path("run/checkpoints").iterdir()
    kept, _ = open_tensors((newest / "weights.safetensors").read_bytes(), "weights")
    norm = torch.cat([kept[f"last.{name}"].flatten() for name in ("weight", "bias")]).norm().item()
    assert layers["last"]["weight_norm"] == pytest.approx(norm, rel=1e-5)
    assert list(layers) == ["first", "norm", "last"]
    (row,) = payload("activations")["activations"]["trained"]
    assert (row["name"], row["function"]) == ("norm", "relu")
    for view in VIEWS:  # of the run in memory, whose code is that of this process
        assert run.inspect(view).to_dict()["view"] == view
    assert all(torch.equal(value, before[name]) for name, value in run.model.state_dict().items())
    assert not run.model.training


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("model-map", "--text", "x"),
            "an own module has batches of its own: leave out options of rows",
        ),
        (("activations", "--data", "x"), "leave out options of rows"),
        (("updates", "--control"), "the first weights of an own module need not be random"),
        (
            ("confusion",),
            "this run predicts no classes (task own module); the views that fit this run: ",
        ),
    ],
)
def test_what_an_own_module_has_not(arguments: tuple[str, ...], message: str) -> None:
    train()
    assert message in refuse("inspect", "run", *arguments, "--trust-plugin")


@pytest.mark.parametrize(
    ("make", "held_out", "fitting", "reason"),
    [
        (make_net, valid(), ["curves"], "as valid, give foveal.Trainer a function that makes batches"),
        (make_net, None, ["curves"], "as valid, give foveal.Trainer a function that makes batches"),
        (lambda: Net(), valid, ["curves"], "its module can't be imported"),
    ],
)
def test_without_a_batch_or_a_module(
    make: Callable[[], nn.Module], held_out: Any, fitting: list[str], reason: str
) -> None:
    train(make, held_out)
    found, others = listed("--trust-plugin")
    assert found == fitting
    for name in ("activations", "model-map", "updates"):
        assert reason in others[name]
    assert reason in refuse("inspect", "run", "model-map", "--trust-plugin")


def test_a_report_and_another_of_the_task() -> None:
    """A report has the views that fit; runs of own modules are not compared by name alone."""
    train()
    told = succeed("inspect", "run", "--trust-plugin", "--report", "all.html", "--json")
    assert json.loads(told.out)["views"] == VIEWS
    with pytest.raises(UserError, match="not of the task own module"):
        foveal.load("run", trust_plugin=True).inspect("curves", with_=("run",))
