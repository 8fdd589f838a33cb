"""A killed and resumed run ends bit for bit like one that was not; every part of the state counts."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.core.signals import SignalHandler
from foveal.core.state import pack, unpack
from foveal.store import checkpoint, durable
from foveal.store.dataclass_tables import dataclass_to_dict
from foveal.store.sealed import open_json, open_tensors, seal_json, seal_tensors
from foveal.training import trainer
from foveal.training.snapshot import TrainingCounters
from tests.support.run_fingerprint import differences, fingerprint
from tests.support.saved_files import contents, save_files
from tests.support.toy_training import ToyTrainer, new_run, toy_config, toy_trainer, train

STEPS = 12


class Killed(BaseException):
    """Stands for SIGKILL: nobody catches it, nothing is saved."""


def kill_in(call: int) -> Callable[[str, int], None]:
    """Dies in the middle of the forward pass number `call`, before its update."""

    def hook(where: str, calls: int) -> None:
        if where == "train" and calls == call:
            raise Killed

    return hook


def resumed(path: Path, config: Config, kills: list[int], **options: Any) -> ToyTrainer:
    """Killed at each of `kills` (forward passes of that life), then left to end."""
    for call in kills:
        with pytest.raises(Killed):
            train(path, config, hook=kill_in(call), **options)
    return train(path, config, **options)


def settings(every_step: bool, **training: Any) -> Config:
    seconds = 1e-9 if every_step else 1e9
    return toy_config(training={"checkpoint_seconds": seconds, "grad_accumulation": 2, **training})


@pytest.mark.slow
def test_resume_at_every_step_over_two_epochs(tmp_path: Path) -> None:
    whole = fingerprint(train(tmp_path / "whole", settings(True)))
    for step in range(STEPS):
        for micro in (1, 2):
            path = tmp_path / f"{step}-{micro}"
            again = resumed(path, settings(True), [2 * step + micro])
            assert again.recorder.begun[0][0] == step
            assert differences(fingerprint(again), whole) == [], (step, micro)
            shutil.rmtree(path)


def test_the_kept_weights_are_those_of_the_checkpoint_again(tmp_path: Path) -> None:
    """Weights kept after the checkpoint, in a life that is forgotten, must not outlive it."""
    path = tmp_path / "run"
    with pytest.raises(Killed):
        train(path, settings(True), hook=kill_in(11))
    kept = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(b"of another life")
    with pytest.raises(Killed):
        train(path, settings(True), hook=kill_in(1))
    assert (path / "model.safetensors").read_bytes() == kept


def test_a_chain_of_kills(tmp_path: Path) -> None:
    whole = fingerprint(train(tmp_path / "whole", settings(True)))
    assert differences(fingerprint(resumed(tmp_path / "chain", settings(True), [3] * 10)), whole) == []


def test_the_moments_of_checkpoints_change_nothing(tmp_path: Path) -> None:
    often = fingerprint(train(tmp_path / "often", settings(True)))
    never = fingerprint(train(tmp_path / "never", settings(False)))
    different = differences(often, never)
    assert different == ["state"], "only the fingerprint of the run, whose config differs, may"
    often["state"].pop("run")
    never["state"].pop("run")
    assert often["state"] == never["state"]


def test_killed_before_the_first_checkpoint_it_begins_again_with_its_plan(tmp_path: Path) -> None:
    whole = fingerprint(train(tmp_path / "whole", settings(False)))
    again = resumed(tmp_path / "killed", settings(False), [1, 15])
    assert again.recorder.begun[0][0] == 0
    assert again.recorder.begun[0][1].total_steps == STEPS
    assert differences(fingerprint(again), whole) == []


@pytest.mark.parametrize("name", ["sgd", "momentum", "adagrad", "rmsprop", "adam", "adamw", "muon"])
def test_every_optimizer_resumes(tmp_path: Path, name: str) -> None:
    config = toy_config(
        optimizer={"name": name, "lr": 0.01}, training={"checkpoint_seconds": 1e-9, "budget": "6steps"}
    )
    whole = fingerprint(train(tmp_path / "whole", config))
    assert differences(fingerprint(resumed(tmp_path / "killed", config, [4])), whole) == []


def test_bfloat16_resumes(tmp_path: Path) -> None:
    config = toy_config(
        training={"checkpoint_seconds": 1e-9, "budget": "6steps", "precision": "bfloat16", "ema_decay": 0.0}
    )
    whole = fingerprint(train(tmp_path / "whole", config))
    assert differences(fingerprint(resumed(tmp_path / "killed", config, [4])), whole) == []


class Clock:
    """Time that runs by `step` seconds a call."""

    def __init__(self, step: float):
        self.now, self.step = 0.0, step

    def perf_counter(self) -> float:
        self.now += self.step
        return self.now


@pytest.mark.parametrize("kills", [[10], [18], [26], [18, 4, 7]])
@pytest.mark.parametrize("every_step", [True, False])
def test_a_time_budget_is_repeated_given_its_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: list[int], every_step: bool
) -> None:
    """The plan is made at step 15 of 30. Killed after it, a run goes on with it on any clock; killed
    before it, a run on the same clock makes the same plan if its checkpoint is of the step before."""

    def tick(seconds: float) -> None:
        monkeypatch.setattr(trainer, "time", SimpleNamespace(
            perf_counter=Clock(seconds).perf_counter, monotonic=Clock(1.0).perf_counter
        ))  # fmt: skip

    config = toy_config(training={
        "budget": "3.75s", "checkpoint_seconds": 1e-9 if every_step else 1e9, "evaluate_every": 0
    })  # fmt: skip
    tick(0.125)
    first = train(tmp_path / "whole", config)
    plan = first.recorder.plans[0]
    assert (plan.decided_at, plan.decay_start, plan.total_steps) == (15, 15, 30)
    assert first.recorder.begun[0][1] is None

    path = tmp_path / "killed"
    for number, call in enumerate(kills):
        with pytest.raises(Killed):
            train(path, config, hook=kill_in(call))
        if kills[0] > 15:
            tick(0.7 + number)
    again = train(path, config)
    assert again.recorder.plans == ([] if kills[0] > 15 else [plan])
    assert differences(fingerprint(again), fingerprint(first)) == []


def test_time_spent_before_the_plan_counts_after_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(perf_counter=Clock(0.125).perf_counter, monotonic=Clock(1.0).perf_counter)
    monkeypatch.setattr(trainer, "time", clock)
    path = tmp_path / "run"
    with pytest.raises(Killed):
        train(path, toy_config(training={"budget": "3.75s", "checkpoint_seconds": 1e-9}), hook=kill_in(10))
    saved, _ = checkpoint.load_latest(path / "checkpoints")
    assert saved
    files = contents(saved)
    edit_state(lambda state: state["progress"].update(seconds=0.0))(files)
    save_files(path / "checkpoints", 9, files, None, "run")
    assert train(path).recorder.plans[0].total_steps == 39


def test_the_plan_is_durable_before_the_first_step_that_depends_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run"
    synced: list[str] = []
    real = durable.atomic_write

    def recorded(target: Path, content: bytes) -> None:
        real(target, content)
        synced.append(target.name)

    monkeypatch.setattr(durable, "atomic_write", recorded)
    with pytest.raises(Killed):
        train(path, settings(False), hook=kill_in(1))
    assert synced == ["plan.json"]


# Each part of the saved state, dropped once, is noticed.

Edit = Callable[[dict[str, bytes]], None]


def edit_tensors(file: str, change: Callable[[dict[str, torch.Tensor]], None]) -> Edit:
    def edit(files: dict[str, bytes]) -> None:
        tensors, facts = open_tensors(files[file], file)
        change(tensors)
        files[file] = seal_tensors(tensors, facts)

    return edit


def edit_state(change: Callable[[dict[str, Any]], None]) -> Edit:
    def edit(files: dict[str, bytes]) -> None:
        state = open_json(files["state.json"], "state.json")
        change(state)
        files["state.json"] = seal_json(state)

    return edit


def parts(files: dict[str, bytes]) -> dict[str, Edit]:
    """One way to lose each part of a checkpoint."""
    found: dict[str, Edit] = {}
    for file in files:
        found[f"{file} missing"] = lambda f, file=file: f.pop(file)  # type: ignore[misc]
    for file in ("optimizer.safetensors", "average.safetensors", "weights.safetensors", "carry.safetensors"):
        for name in open_tensors(files[file], file)[0]:
            found[f"{file} {name} missing"] = edit_tensors(file, lambda t, name=name: t.pop(name))  # type: ignore[misc]
            if file != "optimizer.safetensors" or name.endswith("step"):
                found[f"{file} {name} zero"] = edit_tensors(file, lambda t, name=name: t[name].zero_())  # type: ignore[misc]
    parameters = {name.split("/")[0] for name in open_tensors(files["optimizer.safetensors"], "")[0]}
    for parameter in parameters:

        def forget(tensors: dict[str, torch.Tensor], parameter: str = parameter) -> None:
            for key in [key for key in tensors if key.startswith(f"{parameter}/")]:
                del tensors[key]

        found[f"moments of {parameter} missing"] = edit_tensors("optimizer.safetensors", forget)
    state = open_json(files["state.json"], "state.json")
    for key in state:
        found[f"{key} missing"] = edit_state(lambda s, key=key: s.pop(key))  # type: ignore[misc]
    defaults = dataclass_to_dict(TrainingCounters())
    for key, value in state["progress"].items():
        found[f"progress.{key} missing"] = edit_state(lambda s, key=key: s["progress"].pop(key))  # type: ignore[misc]
        if key not in ("seconds", "finished"):
            assert value != defaults[key], f"{key} says nothing in this scenario"
            found[f"progress.{key} forgotten"] = edit_state(
                lambda s, key=key: s["progress"].update({key: defaults[key]})  # type: ignore[misc]
            )
    found["log offsets at the beginning"] = edit_state(lambda s: s.update(metrics=0, samples=0))
    found["log offset of samples only"] = edit_state(lambda s: s.update(samples=0))
    found["another run's"] = edit_state(lambda s: s.update(run="0" * 64))
    found["another plan"] = edit_state(lambda s: s["plan"].update(total_steps=40))

    def no_count(files: dict[str, bytes]) -> None:
        state = open_json(files["state.json"], "state.json")
        carries = unpack(open_tensors(files["carry.safetensors"], "")[0], state["carry"])
        tensors, state["carry"] = pack([None for _ in carries])
        files["carry.safetensors"] = seal_tensors(tensors, {})
        files["state.json"] = seal_json(state)

    found["carries forgotten"] = no_count
    return found


@pytest.mark.slow
def test_every_part_of_the_state_is_noticed_when_it_is_lost(tmp_path: Path) -> None:
    """The checkpoint of step 10: a refused step and evaluations without improvement behind it, an early stop
    ahead."""
    config = toy_config(
        optimizer={"lr": 0.3, "weight_decay": 0.1},
        training={"budget": "60steps", "evaluate_every": 2, "patience": 5, "ema_decay": 0.5},
    )

    def scenario(path: Path, until: int | None = None) -> ToyTrainer:
        made: Any = toy_trainer(path, config)
        first: Any = made.model.projection.bias
        calls = [0]

        def spoil(gradient: torch.Tensor) -> torch.Tensor:
            return gradient * float("nan") if made.state.counters.step in (9, 10) else gradient

        first.register_hook(spoil)

        def hook(where: str, number: int) -> None:
            calls[0] = number
            if until is not None and where == "train" and made.state.counters.step == until:
                made.save()
                raise Killed

        made.objective.hook = hook
        made.run(SignalHandler())
        return made

    whole = scenario(tmp_path / "whole")
    assert whole.recorder.end[1] == "patience"
    wanted = fingerprint(whole)
    with pytest.raises(Killed):
        scenario(tmp_path / "half", until=10)
    saved, _ = checkpoint.load_latest(tmp_path / "half" / "checkpoints")
    assert saved

    edits = parts(contents(saved))
    edits["nothing"] = lambda files: None
    edits["plan.json missing"] = edits["nothing"]
    edits["plan.json of another plan"] = edits["nothing"]
    unnoticed = []
    for number, (what, edit) in enumerate(edits.items()):
        path = tmp_path / f"case{number}"
        shutil.copytree(tmp_path / "half", path)
        shutil.rmtree(path / "checkpoints")
        (path / "checkpoints").mkdir()
        files = contents(saved)
        edit(files)
        save_files(path / "checkpoints", 10, files, None, "run")
        if what == "plan.json missing":
            (path / "plan.json").unlink()
        if what == "plan.json of another plan":
            plan = {"total_steps": 50, "decay_start": 25, "decided": 0}
            (path / "plan.json").write_bytes(seal_json(plan))
        try:
            noticed = differences(fingerprint(scenario(path)), wanted) != []
        except (UserError, KeyError, AssertionError):
            noticed = True
        if not noticed:
            unnoticed.append(what)
        shutil.rmtree(path)
    assert len(edits) > 60
    assert unnoticed == ["nothing"]


def test_logs_have_each_step_once(tmp_path: Path) -> None:
    done = resumed(tmp_path / "run", settings(True), [5, 9])
    records = [json.loads(line) for line in done.folder.metrics.read_text().splitlines()]
    assert [r["step"] for r in records if r["kind"] == "step"] == list(range(1, STEPS + 1))
    assert [r["step"] for r in records if r["kind"] == "evaluation"] == list(range(2, STEPS + 1, 2))


def test_a_finished_run_is_not_resumed(tmp_path: Path) -> None:
    train(tmp_path / "run")
    with pytest.raises(UserError, match="finished after 12 steps"):
        train(tmp_path / "run")


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    train(tmp_path / "one", settings(True))
    new_run(tmp_path / "other", settings(True, seed=5))
    shutil.copytree(tmp_path / "one" / "checkpoints", tmp_path / "other" / "checkpoints", dirs_exist_ok=True)
    with pytest.raises(UserError, match="checkpoint of another run"):
        train(tmp_path / "other")


def test_a_log_cut_short_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        train(tmp_path / "run", settings(True), hook=kill_in(15))
    (tmp_path / "run" / "metrics.jsonl").write_bytes(b"")
    with pytest.raises(UserError, match="shorter than its checkpoint says"):
        train(tmp_path / "run")
