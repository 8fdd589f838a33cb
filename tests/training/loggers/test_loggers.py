"""Every logger has each number of metrics.jsonl once, whatever happens to the training."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from foveal.core.callbacks import Callback, Record
from foveal.core.errors import UserError
from foveal.training.callbacks import CallbackList
from foveal.training.loggers import registry
from foveal.training.loggers.registry import check_loggers, logger_names, make_loggers
from tests.support.fixtures import quick_disk
from tests.support.logged_numbers import READERS, logger_state, metrics_of_run
from tests.support.toy_training import new_run, toy_config, train

__all__ = ["quick_disk"]
HEAVY = ("mlflow", "trackio", "wandb")
"""Libraries that CI does not install; `.ci/slow` does."""
EVERY_LOGGER = [pytest.param(name, marks=[pytest.mark.slow] * (name in HEAVY)) for name in READERS]
EVERY_STEP = {"budget": "7steps", "checkpoint_seconds": 1e-9}


@pytest.fixture(autouse=True)
def in_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path}/mlruns")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    (tmp_path / "offline").mkdir()
    monkeypatch.setenv("WANDB_DIR", str(tmp_path / "offline"))
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    yield
    if "wandb" in sys.modules:
        sys.modules["wandb"].teardown()  # its folder is that of the first run of a process


class Killed(BaseException):
    """Stands for SIGKILL: nobody catches it."""


class KillAfter(Callback):
    def __init__(self, step: int):
        self.step = step

    def on_step(self, record: Record) -> None:
        if record["step"] == self.step:
            raise Killed


def train_logged(name: str, kill_after: int | None = None, **training: Any) -> Path:
    run = Path("run")
    if not run.exists():
        new_run(run, toy_config(training=EVERY_STEP | training))
    callbacks = [*make_loggers([name], run), *([KillAfter(kill_after)] if kill_after else [])]
    with suppress(Killed):
        train(run, callbacks=callbacks)
    return run


def rounded(numbers: Any) -> Any:
    """TensorBoard and W&B keep numbers as float32."""
    return {
        name: [(step, pytest.approx(value, rel=1e-6)) for step, value in pairs]
        for name, pairs in sorted(numbers.items())
    }


@pytest.mark.parametrize("name", EVERY_LOGGER)
def test_every_number_is_logged_once(name: str) -> None:
    pytest.importorskip(name)
    run = train_logged(name)
    logged = READERS[name](run)
    assert dict(sorted(logged.items())) == rounded(metrics_of_run(run))
    assert {"train/loss", "train/rate", "valid/loss"} <= logged.keys()


@pytest.mark.parametrize("name", EVERY_LOGGER)
@pytest.mark.parametrize("every_step", [True, False], ids=["with checkpoints", "without a checkpoint"])
def test_a_resumed_run_goes_on_in_the_same_log(name: str, every_step: bool) -> None:
    """The steps after the last checkpoint, which are repeated, are there once."""
    pytest.importorskip(name)
    seconds = 1e-9 if every_step else 1e9
    run = train_logged(name, kill_after=5, checkpoint_seconds=seconds)
    before = logger_state(run, name).get("run")
    train_logged(name)
    assert logger_state(run, name).get("run") == before
    steps = {key: [step for step, _ in pairs] for key, pairs in READERS[name](run).items()}
    assert steps == {key: [step for step, _ in pairs] for key, pairs in metrics_of_run(run).items()}


@pytest.mark.parametrize("name", EVERY_LOGGER)
def test_a_logger_that_is_new_to_a_run_gets_all_of_it(name: str) -> None:
    pytest.importorskip(name)
    run = Path("run")
    new_run(run, toy_config(training=EVERY_STEP))
    with pytest.raises(Killed):
        train(run, callbacks=[KillAfter(5)])
    train_logged(name)
    assert dict(sorted(READERS[name](run).items())) == rounded(metrics_of_run(run))


@pytest.mark.parametrize("name", EVERY_LOGGER)
def test_the_scores_at_the_end_are_logged(name: str) -> None:
    pytest.importorskip(name)
    run = Path("run")
    new_run(run, toy_config(training={"budget": "2steps"}))
    callbacks = CallbackList(make_loggers([name], run))
    with callbacks.running():
        train(run, callbacks=callbacks.callbacks)
    again = CallbackList(make_loggers([name], run))
    again.end = {"reason": "budget"}
    with again.running():
        result = {
            "run": "run",
            "split": "test",
            "steps": 2,
            "loss": 0.5,
            "scores": [1],
            "nothing": float("nan"),
        }
        again.emit(Callback.on_test, result)
    logged = READERS[name](run)
    assert logged["final/loss"] == [(2, 0.5)]
    assert {key for key in logged if key.startswith("final/")} == {"final/loss"}
    assert [step for step, _ in logged["train/loss"]] == [1, 2]


def test_mlflow_and_tensorboard_get_the_settings() -> None:
    run = train_logged("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    (text,) = events.Tensors("settings/text_summary")
    assert b"lr = 0.02" in text.tensor_proto.string_val[0]


@pytest.mark.slow
@pytest.mark.parametrize(("kill_after", "status"), [(None, "FINISHED"), (3, "FAILED")])
def test_a_run_of_mlflow_has_settings_and_a_status(kill_after: int | None, status: str) -> None:
    pytest.importorskip("mlflow")
    from mlflow import MlflowClient

    run = train_logged("mlflow", kill_after)
    found = MlflowClient().get_run(logger_state(run, "mlflow")["run"])
    assert found.info.status == status
    assert found.info.run_name == "run"
    assert found.data.params["optimizer.lr"] == "0.02"


def test_the_names_are_those_of_the_files() -> None:
    assert logger_names() == sorted(READERS)
    with pytest.raises(UserError, match=r"^--log tensor: no such logger; did you mean 'tensorboard'\?$"):
        check_loggers(["csv", "tensor"])


@pytest.mark.parametrize("name", [name for name in READERS if name != "csv"])
def test_a_missing_library_is_one_line(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def missing(package: str) -> None:
        raise ImportError

    monkeypatch.setattr("foveal.core.extras.import_module", missing)
    check_loggers(["csv"])
    line = f"--log {name} needs the package {name}: pip install 'foveal[{name}]'"
    with pytest.raises(UserError) as error:
        check_loggers([name])
    assert str(error.value) == line
    folder = Path("run/loggers")
    folder.mkdir(parents=True)
    (folder / f"{name}.json").write_text(json.dumps({}))
    with pytest.raises(UserError) as error:
        make_loggers([], Path("run"))
    assert str(error.value) == f"run: {line}; or remove its folder run/loggers to go on without"


@pytest.mark.slow
def test_a_store_that_mlflow_lacks_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """As mlflow-skinny lacks the default one."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nowhere:x")
    with pytest.raises(UserError, match=r"^--log mlflow: .*pip install 'foveal\[mlflow\]' has all stores$"):
        check_loggers(["mlflow"])


def test_a_run_keeps_its_loggers() -> None:
    train_logged("csv")
    made: Callable[..., Any] = make_loggers
    assert [callback.name for callback in made([], Path("run"))] == ["csv"]
    assert [callback.name for callback in made(["tensorboard", "csv"], Path("run"))] == ["csv", "tensorboard"]
    assert registry.make_loggers([], Path("elsewhere")) == []
