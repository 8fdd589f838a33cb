"""A larger budget: a finished run goes on, and the plan says how."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from foveal.config import Config
from foveal.core.callbacks import Callback, Record
from foveal.core.errors import UserError
from foveal.core.signals import SignalHandler
from foveal.store.checkpoint import load_latest
from foveal.store.plan import Plan, Plans
from foveal.store.run import open_run
from foveal.training.extension import extend_budget
from foveal.training.snapshot import read_counters
from tests.support.run_fingerprint import differences, fingerprint, lines
from tests.support.toy_training import ToyTrainer, toy_config, toy_trainer, train


class Killed(BaseException):
    """Stands for SIGKILL: nobody catches it, nothing is saved."""


class KillAfter(Callback):
    def __init__(self, step: int):
        self.step = step

    def on_step(self, record: Record) -> None:
        if record["step"] == self.step:
            raise Killed


def extend(path: Path, budget: str) -> str:
    """Extend the budget of a run, whose epochs have six batches. Return what is said."""
    said: list[str] = []
    extend_budget(open_run(path), budget, 6, said.append)
    return said[0]


def settings(**training: Any) -> Config:
    return toy_config(training={"checkpoint_seconds": 1e-9, **training})


def rates(path: Path) -> list[float]:
    return [record["rate"] for record in lines(path / "metrics.jsonl") if record["kind"] == "step"]


def test_a_finished_run_goes_on_to_the_new_end(tmp_path: Path) -> None:
    path = tmp_path / "run"
    train(path, settings())
    said = extend(path, "+8steps")
    assert (
        said
        == "budget +8steps: 20 steps in place of 12; goes on at step 12; the learning rate falls from step 12"
    )
    done = train(path)
    assert done.recorder.begun[0][:2] == (12, Plan(20, 12, 12))
    assert done.recorder.end[:2] == (20, "budget")
    log = lines(path / "metrics.jsonl")
    assert [record["step"] for record in log if record["kind"] == "step"] == [*range(1, 21)]
    assert len({(record["kind"], record["step"]) for record in log}) == len(log), "nothing is twice"
    assert rates(path)[11] < 0.005, "the end of the first budget"
    assert rates(path)[12:] == pytest.approx([0.02 * (1 - step / 8) for step in range(8)])
    with pytest.raises(
        UserError, match=r"finished after 20 steps; to go on: foveal resume .*run --budget \+10m"
    ):
        train(path)


def test_the_plan_keeps_its_history(tmp_path: Path) -> None:
    path = tmp_path / "run"
    train(path, settings())
    (path / "curves.png").write_bytes(b"old")
    extend(path, "+8steps")
    assert not (path / "curves.png").exists(), "its report is to be made again"
    content = json.loads((path / "plan.json").read_text())
    first = {"total_steps": 12, "decay_start": 6, "decided": 0}
    assert content["earlier"] == [first]
    train(path)
    extend(path, "40steps")
    plans = open_run(path).read_plans()
    assert plans == Plans((Plan(12, 6, 0), Plan(20, 12, 12), Plan(40, 20, 20)), "40steps")
    assert [plans.at(step) for step in (-1, 0, 11, 12, 19, 20, 99)] == [
        *[plans.plans[0]] * 3,
        *[plans.plans[1]] * 2,
        *[plans.plans[2]] * 2,
    ]
    train(path)
    assert len(rates(path)) == 40


@pytest.mark.parametrize("kills", [[16], [13, 13, 18]])
@pytest.mark.parametrize("often", [True, False], ids=["checkpoints", "none until the end"])
def test_killed_in_the_extension_and_resumed_is_not_killed(
    tmp_path: Path, kills: list[int], often: bool
) -> None:
    config = settings(checkpoint_seconds=1e-9 if often else 1e9, patience=0)
    endings = []
    for name, steps in (("whole", []), ("run", kills)):
        path = tmp_path / name
        train(path, config)
        extend(path, "+8steps")
        for step in steps:
            with pytest.raises(Killed):
                train(path, callbacks=[KillAfter(step)])
        endings.append(fingerprint(train(path)))
    assert differences(*endings) == []


def test_a_checkpoint_before_the_extension_repeats_the_old_plan(tmp_path: Path) -> None:
    """The newest checkpoint is damaged after the extension: the steps before follow the plan before."""
    endings = []
    for name in ("whole", "run"):
        path = tmp_path / name
        train(path, settings(evaluate_every=0))
        extend(path, "+8steps")
        if name == "run":
            for file in (path / "checkpoints" / "12").glob("*.safetensors"):
                file.write_bytes(b"damaged")
        endings.append(fingerprint(train(path)))
        assert len(rates(path)) == 20
    assert differences(*endings) == []


def stopped(path: Path, step: int, config: Config) -> ToyTrainer:
    trainer = toy_trainer(path, config, callbacks=[KillAfter(step + 1)])
    with pytest.raises(Killed):
        trainer.run(SignalHandler())
    return trainer


@pytest.mark.parametrize(
    ("budget", "total"),
    [("+8steps", 20), ("+1epoch", 18), ("8steps", 8), ("3epochs", 18), ("+30tokens", 14), ("300tokens", 20)],
)
def test_a_stopped_run_gets_more_or_another_end(tmp_path: Path, budget: str, total: int) -> None:
    """Of twelve steps five are done, of 15 tokens each."""
    path = tmp_path / "run"
    stopped(path, 5, settings())
    assert f"{total} steps in place of 12; goes on at step 5" in extend(path, budget)
    assert train(path).recorder.end[:2] == (total, "budget")
    assert len(rates(path)) == total


def test_a_budget_in_time_is_converted_at_the_pace_of_the_run(tmp_path: Path) -> None:
    path = tmp_path / "run"
    pace = train(path, settings()).state.counters.seconds / 12
    assert ", at " in extend(path, f"+{4 * pace + 0.1 * pace:.9f}s")
    assert open_run(path).read_plans().newest == Plan(17, 12, 12)
    extend(path, f"{15 * pace - 0.1 * pace:.9f}s")
    assert open_run(path).read_plans().newest == Plan(15, 12, 12)


def test_a_stopped_run_without_a_plan_gets_one(tmp_path: Path) -> None:
    path = tmp_path / "run"
    stopped(path, 5, settings(budget="100s"))
    saved, _ = load_latest(path / "checkpoints")
    assert saved
    said = extend(path, "+10s")
    newest = open_run(path).read_plans().newest
    assert newest is not None
    assert newest.total_steps == math.ceil(110 * 5 / read_counters(saved).seconds - 1e-9)
    assert "in place of" not in said
    assert newest.decided_at == 5


def test_early_stopping_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "run"
    config = toy_config(optimizer={"lr": 0.3}, training={"budget": "100steps", "patience": 3})
    step = train(path, config).recorder.end[0]
    assert step < 100
    extend(path, "+10steps")
    done = train(path).recorder.end
    assert step + 6 <= done[0] <= step + 10


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (
            "12steps",
            "--budget 12steps: RUN is trained for 12 steps already: give a larger budget, or what to add",
        ),
        ("0.000001s", "--budget 0.000001s: RUN is trained for 12 steps already"),
        ("+10 minutes", "budget '10 minutes': expected an amount above 0"),
        ("++10m", "budget '+10m': expected an amount above 0"),
    ],
)
def test_what_is_no_larger_budget_is_refused(tmp_path: Path, budget: str, message: str) -> None:
    path = tmp_path / "run"
    train(path, settings())
    before = (path / "plan.json").read_bytes()
    with pytest.raises(UserError) as error:
        extend(path, budget)
    assert str(error.value).startswith(message.replace("RUN", str(path)))
    assert (path / "plan.json").read_bytes() == before


def test_a_run_without_a_checkpoint_or_in_training_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    stopped(path, 2, settings(checkpoint_seconds=1e9))
    with pytest.raises(
        UserError, match="no step is saved yet, so the budget can't be extended: foveal resume"
    ):
        extend(path, "+1steps")

    class Extend(Callback):
        def on_checkpoint(self, step: int, where: Path) -> None:
            extend(path, "+1steps")

    with pytest.raises(UserError, match="another process is training this run"):
        train(path, callbacks=[Extend()])


@pytest.mark.parametrize("key", ["budget", "earlier"])
def test_a_plan_that_is_not_ours_is_refused(tmp_path: Path, key: str) -> None:
    from foveal.store.sealed import seal_json

    path = tmp_path / "run"
    train(path, settings())
    extend(path, "+8steps")
    content = json.loads((path / "plan.json").read_text())
    del content["sha256"]
    (path / "plan.json").write_bytes(seal_json(content | {key: 3}))
    with pytest.raises(UserError, match=rf"plan\.json: {key} has a value that Foveal does not write"):
        open_run(path).read_plans()
