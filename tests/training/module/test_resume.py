"""A killed training of the user's own module goes on exactly, whatever its batches come from."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from foveal.core.callbacks import Callback, Record
from tests.support.fixtures import quick_disk
from tests.support.module_training import BATCH, SOURCES, OwnState, batches, ending, examples, loss, train

__all__ = ["quick_disk"]
SETTINGS = {"training.checkpoint_seconds": 1e-9, "training.evaluate_every": 4}
STATE_WARNING = "ignore:'set_vital' is deprecated"
"""Of torchdata with this version of torch."""


@pytest.fixture(autouse=True)
def no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than training."""
    monkeypatch.setattr("foveal.api.own_module.trainer.write_curves", lambda folder, name: None)


class Killed(BaseException):
    """Stands for SIGKILL: nobody catches it, nothing is saved."""


class KillAfter(Callback):
    """Dies after an update, before its checkpoint."""

    def __init__(self, step: int):
        self.step = step

    def on_step(self, record: Record) -> None:
        if record["step"] == self.step:
            raise Killed


def options(name: str) -> dict[str, Any]:
    return {"batches_per_epoch": 6} if name == "function" else {}


def kill(path: Path, source: Any, step: int, objective: Any = loss, **more: Any) -> None:
    with pytest.raises(Killed):
        train(path, source, objective, more.pop("settings", SETTINGS), callbacks=[KillAfter(step)], **more)


@pytest.mark.filterwarnings(STATE_WARNING)
@pytest.mark.parametrize(
    ("name", "accumulation"), [*((name, 1) for name in SOURCES), ("loader", 4), ("generator function", 4)]
)
def test_killed_and_resumed_is_not_killed(
    tmp_path: Path, name: str, accumulation: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the second epoch: the order of each epoch differs, and the place in it counts."""
    settings = SETTINGS | {"training.grad_accumulation": accumulation}
    torch.manual_seed(7)
    train(tmp_path / "whole", SOURCES[name](), settings=settings, valid=batches(), **options(name))
    torch.manual_seed(7)
    kill(tmp_path / "run", SOURCES[name](), 8, settings=settings, valid=batches(), **options(name))
    assert newest_step(tmp_path / "run") == 7
    capsys.readouterr()
    torch.manual_seed(99)
    train(tmp_path / "run", SOURCES[name](), settings=settings, valid=batches(), **options(name))
    assert ending(tmp_path / "run") == ending(tmp_path / "whole")
    assert "order" not in capsys.readouterr().err


def newest_step(run: Path) -> int:
    return max((int(path.name) for path in (run / "checkpoints").iterdir() if path.name.isdigit()), default=0)


@pytest.mark.filterwarnings(STATE_WARNING)
@pytest.mark.parametrize("name", ["loader with a generator", "loader with state and a generator"])
def test_the_epoch_after_a_resume_is_the_same(tmp_path: Path, name: str) -> None:
    """Although the order of each epoch comes from the loader's own generator."""
    train(tmp_path / "whole", SOURCES[name](), settings=SETTINGS)
    kill(tmp_path / "run", SOURCES[name](), 4)
    train(tmp_path / "run", SOURCES[name](), settings=SETTINGS)
    assert ending(tmp_path / "run") == ending(tmp_path / "whole")


@pytest.mark.parametrize("steps", [6, 7, 8])
def test_a_chain_of_kills_around_the_end_of_an_epoch(tmp_path: Path, steps: int) -> None:
    def loader() -> Any:
        return DataLoader(examples(), BATCH, shuffle=True)

    train(tmp_path / "whole", loader(), settings=SETTINGS)
    for step in (steps, steps, steps + 1):
        kill(tmp_path / "run", loader(), step)
    train(tmp_path / "run", loader(), settings=SETTINGS)
    assert ending(tmp_path / "run") == ending(tmp_path / "whole")


def test_killed_before_the_first_checkpoint_it_begins_with_the_same_weights(tmp_path: Path) -> None:
    train(tmp_path / "whole", settings=SETTINGS)
    kill(tmp_path / "run", batches(), 1)
    other = train(tmp_path / "other", budget="1step").model
    train(tmp_path / "run", module=other, settings=SETTINGS)
    assert ending(tmp_path / "run") == ending(tmp_path / "whole")


def test_another_order_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kill(tmp_path / "run", (batch for batch in batches() * 2), 8)
    capsys.readouterr()
    done = train(tmp_path / "run", (batch for batch in batches()[::-1] * 2), settings=SETTINGS)
    assert "train gives other batches than before the stop" in capsys.readouterr().err
    assert len(done.metrics) == 9


def test_a_batch_that_the_objective_changes_is_the_same_batch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As functions do that take the labels out of a dict."""

    def source() -> Any:
        return ({"x": x, "labels": y} for x, y in batches() * 2)

    def pops(module: Any, batch: Any) -> torch.Tensor:
        labels = batch.pop("labels")
        return loss(module, (batch["x"], labels))

    kill(tmp_path / "run", source(), 3, pops)
    train(tmp_path / "run", source(), pops, settings=SETTINGS)
    assert "order" not in capsys.readouterr().err


class Unstorable(OwnState):
    def state_dict(self) -> dict[str, Any]:
        return {"drawn": object()}


def test_a_state_for_pickle_alone_is_said_and_not_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kill(tmp_path / "run", Unstorable(), 4)
    assert "train.state_dict() has a object, which can't be stored without pickle" in capsys.readouterr().err
    train(tmp_path / "run", Unstorable(), settings=SETTINGS)
