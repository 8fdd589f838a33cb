"""The control draws the weights of before the training, on the same scale, and leaves the run as it was."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

import foveal
from foveal.api.view import compute_view
from foveal.core.errors import UserError
from foveal.inspection.control import with_control
from foveal.inspection.panels import Axis, Heatmap, Lines, NamedArray, Series, Table
from foveal.inspection.payload import Payload
from foveal.inspection.view import Ablation, View
from foveal.tasks.session import Session, build_model, load
from tests.support.labeled_images import SMALL, write_images


@dataclass(frozen=True)
class NoOptions:
    """None."""


class WeightsView(View[NoOptions]):
    """The weights of the last layer as a map."""

    name, summary, Options = "weights", "The weights of the last layer.", NoOptions

    def compute(self, run: Any, options: NoOptions, log: Any, progress: Any) -> Payload:
        weights = last_layer(run.model).detach().numpy()
        high = float(abs(weights).max())
        array = NamedArray(weights, (Axis("to"), Axis("from")))
        facts = ("same", "always"), ("largest", f"{high:.3g}")
        return Payload(
            "weights", "run", "Weights", (Heatmap("head", array, -high, high),), "none", "exact", facts
        )

    def ablate(self, run: Any, options: NoOptions, log: Any) -> tuple[Ablation, ...]:
        return (Ablation("head 3 of stack.blocks.0", "the reference", -0.41, -1.73, 6),)


def last_layer(model: torch.nn.Module) -> torch.Tensor:
    return [parameter for parameter in model.parameters() if parameter.ndim == 2][-1]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("control"))
        settings = {name: value for name, _, value in (setting.partition("=") for setting in SMALL)}
        run = foveal.train(
            write_images(),
            task="image-classification",
            budget="2steps",
            quiet=True,
            settings=settings | {"model.encoder.network": "linear"},
        )
        yield load(run.path)


def maps(payload: Payload) -> list[Heatmap]:
    return [panel for panel in payload.panels if isinstance(panel, Heatmap)]


def test_the_control_has_the_first_weights_of_the_seed(session: Session) -> None:
    before = {name: tensor.clone() for name, tensor in session.model.state_dict().items()}
    trained, control = maps(compute_view(WeightsView(), session, NoOptions(), control=True))
    first = last_layer(build_model(session.task, torch.device("cpu"))).detach().numpy()
    assert np.array_equal(control.array.values, first)
    assert np.array_equal(trained.array.values, before["head.projection.weight"].numpy())
    assert not np.array_equal(trained.array.values, control.array.values)
    assert control.title == "control, random weights: head"
    after = session.model.state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
    assert not session.model.training


def test_a_control_of_imported_weights_is_random_too(session: Session) -> None:
    """Whatever the run's weights are, the control does not hold them."""
    with torch.no_grad():
        original = last_layer(session.model).clone()
        last_layer(session.model).fill_(7.0)
        random = last_layer(session.with_random_weights().model)
        last_layer(session.model).copy_(original)
    assert not (random == 7).any()


def test_facts_name_the_control_and_the_ablation(session: Session) -> None:
    payload = compute_view(WeightsView(), session, NoOptions(), control=True)
    assert [name for name, _ in payload.facts] == [
        "same",
        "largest",
        "control, random weights: largest",
        "ablated",
    ]
    assert payload.facts[-1][1] == (
        "without head 3 of stack.blocks.0, the log-probability of the reference, summed over 6 targets, "
        "changes by -1.32 nats (-0.22 each), from -0.41 to -1.73"
    )
    single = with_control(payload, payload, (Ablation("head 3", "cat", -0.41, -1.73),)).facts[-1][1]
    assert single == "without head 3, the log-probability of cat changes by -1.32 nats, from -0.41 to -1.73"
    assert payload.values["ablations"][0]["after"] == -1.73
    assert len(compute_view(WeightsView(), session, NoOptions()).panels) == 1


def test_both_have_one_scale() -> None:
    def payload(high: float, *more: Any) -> Payload:
        array = NamedArray(np.zeros((1, 1)), (Axis("a"), Axis("b")))
        return Payload("v", "r", "t", (Heatmap("", array, -high, high), *more), "c", "exact")

    line = Lines("line", (Series("s", [1], [2]),), "x")
    merged = with_control(payload(1.0), payload(3.0, line, Table("", ("a",), ())), ())
    own, control, behind, table = merged.panels
    assert isinstance(own, Heatmap)
    assert isinstance(control, Heatmap)
    assert (own.low, own.high) == (control.low, control.high) == (-3.0, 3.0)
    assert (own.title, control.title) == ("", "control, random weights")
    assert (behind.title, table.title) == ("control, random weights: line", "control, random weights")
    sequential = replace(payload(1.0), panels=(replace(maps(payload(2.0))[0], low=0.0),))
    assert maps(with_control(payload(1.0), sequential, ()))[0].high == 1.0, "another kind of scale"


def test_what_has_no_control_says_why(session: Session) -> None:
    view = WeightsView()
    view.depends_on_weights = False  # type: ignore[misc]
    with pytest.raises(UserError, match="the view weights does not read the model's weights") as error:
        compute_view(view, session, NoOptions(), control=True)
    assert "\n" not in str(error.value)


def test_from_python(session: Session) -> None:
    shown = foveal.Run(session.run.path).inspect("filters", control=True).to_dict()
    assert [panel["title"] for panel in shown["panels"]] == ["", "control, random weights"]
    assert shown["norms"] != shown["random_weights"]["norms"]
