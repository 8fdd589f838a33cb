"""`foveal inspect`: a run, and models before their training."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from foveal.tasks import untrained_model
from foveal.tasks.data_init import data_dependent_init
from tests.support.command_line import TINY_MODEL, refuse, succeed
from tests.support.labeled_images import train, write_images

SMALL = ("data.image.size=8", "data.image.batch_size=32")


def looked(*arguments: object) -> dict[str, list[dict[str, Any]]]:
    told = succeed("inspect", *arguments, "--json")
    found: dict[str, list[dict[str, Any]]] = json.loads(told.out)["activations"]
    return found


def test_first_weights_beside_each_other() -> None:
    arguments = ("lenet-5", "activations", "data.image.batch_size=32", "--initialization", "0.01,0.9,kaiming")
    found = looked(*arguments, "--out", "first.png")
    assert list(found) == ["0.01", "0.9", "kaiming"]
    assert all([layer["function"] for layer in layers] == ["tanh"] * 4 for layers in found.values())
    last = {rule: layers[-1] for rule, layers in found.items()}
    assert last["0.01"]["deviation"] < 0.01 * last["kaiming"]["deviation"]
    assert last["0.9"]["saturated"] > 0.8 > 0.4 > last["kaiming"]["saturated"]
    assert found == looked(*arguments), "the seed decides"
    with Image.open("first.png") as picture:
        assert picture.size[0] > 1000


def test_settings_are_of_the_model() -> None:
    settings = ("model.encoder.network_activation=tanh", "model.initialization=0.5")
    (found,) = looked("mlp", "activations", *SMALL, *settings).values()
    assert [layer["function"] for layer in found] == ["tanh"]
    assert found[0]["saturated"] > 0.5
    assert found[0]["dead"] is None
    told = succeed("inspect", "vit", "activations", "model.encoder.layers=1", *SMALL).out
    assert "encoder.stack.blocks.0.feedforward.expand      gelu" in told
    assert re.search(r"encoder\.stack\.blocks\.0 +block", told)
    assert "one batch" in told


def test_a_run_and_other_data() -> None:
    train(write_images(), steps=5)
    first, found = looked("run", "activations", "--out", "run.png").values()
    assert len(found) == 19
    assert [layer["name"] for layer in first] == [layer["name"] for layer in found]
    assert first[0]["histogram"]["low"] == found[0]["histogram"]["low"], "one scale for both"
    assert first[0]["mean"] != found[0]["mean"]
    assert all(layer["gradient"] is not None for layer in found)
    others = looked("run", "activations", "--data", write_images("others", seed=1))["trained"]
    assert others != found
    assert Path("run.png").is_file()
    untrained = looked("resnet-20", "activations", "data.image.size=12", "--data", "squares")["default"]
    assert [layer["name"] for layer in untrained] == [layer["name"] for layer in found]


def test_what_a_training_begins_with_is_fitted_to_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[bool] = []

    def record_result(*given: Any, reused: Any) -> None:
        task, data = given
        begun.append(data_dependent_init(task, data, reused))

    monkeypatch.setattr(untrained_model, "data_dependent_init", record_result)
    small = ("data.image.size=16", "data.image.batch_size=16", "--initialization", "default,kaiming")
    looked("airbench", "activations", *small, "--data", write_images())
    assert begun == [True, True]


def test_a_language_model(run: Path) -> None:
    blocks = [layer for layer in looked(run, "activations")["trained"] if layer["function"] == "block"]
    assert len(blocks) == 1
    (untrained,) = looked("attention", "activations", *TINY_MODEL, "--data", "text.txt").values()
    assert [layer["function"] for layer in untrained] == ["gelu", "block"]


@pytest.mark.parametrize("network", ["linear", "hog", "color-histogram", "visual-words"])
def test_without_activation_functions_the_outputs_are_shown(network: str) -> None:
    (layers,) = looked(network, "activations", *SMALL).values()
    names = {layer["name"]: layer["function"] for layer in layers}
    features = {} if network == "linear" else {"encoder.blocks.0": "output"}
    assert names == features | {"head.projection": "output"}
    assert layers[-1]["gradient"] > 0


def test_what_can_not_be_looked_at(run: Path) -> None:
    assert "unknown preset or network 'resnet20'; did you mean 'resnet-20'" in refuse("inspect", "resnet20")
    assert "there is no view filtres; did you mean 'filters'?" in refuse("inspect", run, "filtres")
    assert "name a view first: foveal inspect" in refuse("inspect", run, "--initialization", "0.01")
    assert "reads no random images: name data with --data" in refuse("inspect", "lstm")
    assert "a run has its own weights: leave out" in refuse(
        "inspect", run, "activations", "--initialization", "0.01"
    )
    assert "expected a name that ends in .png" in refuse("inspect", "mlp", "--out", "mlp.gif")
    assert "a model before training has random weights already" in refuse("inspect", "mlp", "--control")
    told = refuse("inspect", "mlp", "--initialization", "0.01,xaver")
    assert "model.initialization=xaver: expected default, xavier, kaiming or a deviation" in told


@pytest.mark.parametrize(
    ("view", "option"),
    [
        ("confusion", "--query"),
        ("filters", "--data"),
        ("filters", "--layer"),
        ("activations", "--nearest"),
        ("attention", "--length-penalty"),
        ("samples", "--row"),  # an option that views have from those of every input
    ],
)
def test_what_a_view_has_no_use_for(view: str, option: str) -> None:
    told = refuse("inspect", "run", view, option, "3")
    assert f"{option}: the view {view} has no such option; leave it out" in told


def test_help_without_a_view_and_of_the_page() -> None:
    Path("run").mkdir()
    listing = succeed("inspect", "run", "--help").out
    assert "Usage: foveal inspect run [OPTIONS]" in listing
    assert all(option in listing for option in ("--out", "--report", "--open"))
    assert "--port" in succeed("inspect", "run", "--open", "--help").out
    assert "--out" in succeed("inspect", "run", "attention", "--help").out


def test_the_option_of_a_view_is_named_where_none_is() -> None:
    Path("run").mkdir()
    stderr = refuse("inspect", "run", "--report", "x.html", "--control")
    assert "--control: name a view first: foveal inspect run VIEW --control ..." in stderr


def test_a_run_lists_its_views_and_draws_each(run: Path) -> None:
    lines = succeed("inspect", run).out.splitlines()
    assert lines[0] == f"foveal inspect {run} VIEW shows:"
    drawn = succeed("inspect", run, "--json", "--out", "views")
    listed = json.loads(drawn.out)
    notices = [line for line in drawn.err.splitlines() if line.startswith("shown are rows of the run's")]
    assert len(notices) == len({*notices}) >= 1, "several views print the same"
    assert all(f"{view['view']}: {view['summary']}" in drawn.err for view in listed["views"])
    names = [view["view"] for view in listed["views"]]
    assert names == sorted(names)
    assert "activations" in names
    assert listed["others"]["filters"] == "this view needs an encoder of images, and this run has none"
    assert all(any(line.startswith(f"{name} ") for line in lines) for name in names)
    for view in listed["views"]:
        if view["picture"].endswith(".png"):
            with Image.open(view["picture"]) as picture:
                assert picture.width <= 480
    assert "expected a folder" in refuse("inspect", run, "--out", "views.png")


def test_every_format_has_the_same_numbers(run: Path) -> None:
    printed = json.loads(succeed("inspect", run, "activations", "--json", "--out", "a.json").out)
    written = json.loads(Path("a.json").read_text())
    assert printed.pop("picture") == "a.json"
    assert printed == written
    assert written["exactness"] == "exact"
    assert written["caveat"] in " ".join(succeed("inspect", run, "activations").out.split())
    assert succeed("inspect", run, "activations", "--out", "a.svg")
    assert Path("a.svg").read_text().count("<svg ") == 1
