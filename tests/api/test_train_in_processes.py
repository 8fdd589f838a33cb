"""`foveal.train(..., ranks=N)`: several processes train a run that was begun from Python."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
import safetensors.torch
import torch

import foveal
from foveal.core.errors import UserError
from tests.support.untrained_runs import write_plays

SMALL = {
    "model.width": 16,
    "model.layers": 1,
    "data.context_length": 16,
    "data.batch_tokens": 64,
    "training.final_test": False,
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path


@pytest.mark.slow
def test_ranks_have_the_weights_of_one_process() -> None:
    torch.set_num_threads(1)
    one, two = (
        foveal.train(
            write_plays(),
            model="lstm",
            settings=SMALL | {"training.slots": 2},
            budget="20steps",
            run=f"run-{ranks}",
            ranks=ranks,
            quiet=True,
        )
        for ranks in (None, 2)
    )
    weights = [safetensors.torch.load_file(f"{run.path}/model.safetensors") for run in (one, two)]
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())


@pytest.mark.slow
def test_an_interrupt_saves_and_returns_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    path = write_plays()

    def interrupt() -> None:
        while not list(Path("run", "checkpoints").glob("*")):
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    often = SMALL | {"training.checkpoint_seconds": 0.2}
    threading.Thread(target=interrupt, daemon=True).start()
    run = foveal.train(path, model="lstm", settings=often, budget="9000steps", run="run", ranks=2)
    assert Path(run.path) == Path("run")
    said = " ".join(capsys.readouterr().err.split())
    assert "stopped by SIGINT at step" in said
    assert said.count("everything is saved") == 1


def test_ranks_that_can_not_be() -> None:
    with pytest.raises(UserError, match="ranks=0: expected a number from 1 on"):
        foveal.train(["a", "b"], ranks=0)
    with pytest.raises(UserError, match="callbacks= are called in this process"):
        foveal.train(["a", "b"], ranks=2, callbacks=foveal.Callback())
