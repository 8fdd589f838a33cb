"""`foveal.Trainer(ranks=N)`: processes that the script itself starts."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import foveal
from foveal.api.ranks import _Messages
from foveal.core.errors import RunFailed, UserError
from foveal.store.checkpoint_list import list_checkpoints
from tests.support.module_training import examples, loss, valid
from tests.support.own_script import RANKS_SCRIPT, run_script


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    Path("mine.py").write_text(RANKS_SCRIPT)
    torch.set_num_threads(1)
    return tmp_path


def new_net() -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(3, 6), nn.Dropout(0.2), nn.Linear(6, 2))


def loader() -> DataLoader[Any]:
    return DataLoader(examples(), 4, shuffle=True, generator=torch.Generator().manual_seed(1))


def trainer(run: str, ranks: int | None, budget: str = "9steps", **settings: Any) -> foveal.Trainer:
    return foveal.Trainer(
        new_net(),
        lambda module, batch: loss(module, batch),
        loader(),
        valid(),
        budget=budget,
        run=run,
        ranks=ranks,
        settings={"training": {"slots": 2, **settings}},
    )


def weights_of(run: str) -> dict[str, Tensor]:
    return safetensors.torch.load_file(Path(run, "model.safetensors"))


def check_equal(first: dict[str, Tensor], second: dict[str, Tensor]) -> None:
    assert first.keys() == second.keys()
    for name, weight in first.items():
        assert torch.equal(weight, second[name]), name


def test_ranks_have_the_weights_of_one_process() -> None:
    """The module of the script has them, too; it has other weights than when it was made."""
    trainer("one", None).run()
    run = trainer("two", 2).run()
    check_equal(weights_of("one"), weights_of("two"))
    check_equal(weights_of("two"), dict(run.model.state_dict()))
    assert not run.model.training
    assert run.evaluate()["loss"] == pytest.approx(run.metrics.column("loss")[-1])


@pytest.mark.slow
def test_a_script_that_defines_everything_itself() -> None:
    """Without a main guard. Ranks go on with what torchrun began, and have the bits of one process."""
    printed = [
        run_script(1, "one", "alone", "short"),
        run_script(1, "one", "alone"),
        run_script(2, "moved", "alone", "short"),
        run_script(1, "moved"),
        run_script(1, "moved"),
    ]
    assert [result.returncode for result in printed] == [0] * 5, [result.stderr for result in printed]
    check_equal(weights_of("one"), weights_of("moved"))
    assert "computing" in printed[3].stdout, "what a rank prints is shown"
    assert "moved: finished, with 15 steps: nothing to train" in printed[4].stderr
    assert "trained  15 steps" in printed[4].stderr
    assert printed[1].stdout.splitlines()[-1] == printed[4].stdout.splitlines()[-1]


@pytest.mark.slow
def test_ranks_that_share_the_weights() -> None:
    for options in (("whole", "alone"), ("shared",)):
        result = run_script(1, *options, "fsdp")
        assert result.returncode == 0, result.stderr
    whole, shared = weights_of("whole"), weights_of("shared")
    assert any(path.name.startswith("weights-1") for path in Path("shared").glob("checkpoints/*/*"))
    for name, weight in whole.items():
        assert torch.allclose(weight, shared[name], atol=1e-5), name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processes", "option", "message"),
    [
        (1, "fails", "RunFailed: ValueError: no such luck, in loss, line 31 (without ranks= you see the"),
        (1, "wrong", "UserError: objective returned None: return the loss"),
        (2, "torchrun", "UserError: ranks= starts processes, and torchrun has started this one already"),
    ],
)
def test_one_line_says_why_ranks_fail(processes: int, option: str, message: str) -> None:
    result = run_script(processes, "run", option)
    assert result.returncode
    assert message in result.stderr
    assert not Path("run").exists()


def rank_of(process: int, rank: int) -> int | None:
    for child in psutil.Process(process).children(recursive=True):
        if child.environ().get("RANK") == str(rank):
            return child.pid
    return None


def when_there_is_a_checkpoint(act: Callable[[], object]) -> None:
    """Act in a thread, once the run has a checkpoint."""

    def wait() -> None:
        while not list_checkpoints(Path("run", "checkpoints")):
            time.sleep(0.1)
        act()

    threading.Thread(target=wait, daemon=True).start()


def kill_rank() -> None:
    rank = rank_of(os.getpid(), 1)
    assert rank is not None
    os.kill(rank, signal.SIGKILL)


def finish(capsys: pytest.CaptureFixture[str]) -> None:
    """Go on with a stopped run, and check that its weights are those of a run that was not stopped."""
    trainer("run", 2, "1000steps", checkpoint_seconds=0.2).run()
    assert "batches again, to go on after them" in capsys.readouterr().err
    trainer("whole", None, "1000steps", checkpoint_seconds=0.2).run()
    check_equal(weights_of("run"), weights_of("whole"))


@pytest.mark.slow
def test_a_killed_rank_ends_all_and_the_script_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    when_there_is_a_checkpoint(kill_rank)
    line = "rank 1 was ended by SIGKILL, so all 2 ranks are stopped; run the script again, with run='run', to"
    with pytest.raises(RunFailed, match=line):
        trainer("run", 2, "1000steps", checkpoint_seconds=0.2).run()
    finish(capsys)


@pytest.mark.slow
def test_an_interrupt_saves_and_returns_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    when_there_is_a_checkpoint(lambda: os.kill(os.getpid(), signal.SIGINT))
    run = trainer("run", 2, "1000steps", checkpoint_seconds=0.2).run()
    said = " ".join(capsys.readouterr().err.split())
    assert "everything is saved; run the script again, with run='run', to go on" in said
    assert said.count("stopped by SIGINT at step") == 1
    assert run.path == Path("run")
    finish(capsys)


@pytest.mark.slow
def test_ranks_end_with_the_script() -> None:
    script = RANKS_SCRIPT.replace("15steps", "900000steps")
    process = subprocess.Popen(
        [sys.executable, "-c", script, "run"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not list_checkpoints(Path("run", "checkpoints")):
        assert process.poll() is None
        time.sleep(0.1)
    ranks = psutil.Process(process.pid).children(recursive=True)
    assert len(ranks) == 3
    process.kill()
    process.wait()
    assert not psutil.wait_procs(ranks, timeout=60)[1]


class Locked(nn.Linear):
    def __init__(self) -> None:
        super().__init__(3, 2)
        self.lock = threading.Lock()


class LockedData(TensorDataset):
    def __init__(self) -> None:
        super().__init__(*examples().tensors)
        self.lock = threading.Lock()


def some_batches() -> Iterator[Any]:
    yield from DataLoader(examples(), 4)


def test_what_no_other_process_can_get_is_named() -> None:
    """Nothing is started, and nothing is left."""
    lock = threading.Lock()

    def locked(*values: Any) -> Any:
        with lock:
            return 1.0

    parts: dict[str, Any] = {"module": new_net(), "objective": loss, "train": loader(), "valid": valid()}
    wrong: dict[str, Any] = {
        "module": Locked(),
        "objective": locked,
        "train": some_batches(),
        "valid": DataLoader(LockedData(), 4),
        "weight": locked,
    }
    for name, value in wrong.items():
        mend = "make that inside of the function" if value is locked else "give a function that makes it"
        reason = r"\(TypeError: cannot pickle '(_thread.lock|generator)' object\)"
        with pytest.raises(UserError, match=f"^{name} can't be given to other processes {reason}: {mend}$"):
            foveal.Trainer(**parts | {name: value}, run="run", ranks=2).run()
    assert not Path("run").exists()


def test_ranks_that_can_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="ranks=0: expected a number from 1 on"):
        trainer("run", 0)
    with pytest.raises(UserError, match="callbacks= are called in this process, and ranks= trains in others"):
        foveal.Trainer(new_net(), loss, loader(), callbacks=foveal.Callback(), ranks=2)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match="torchrun has started this one already: leave out ranks"):
        trainer("run", 2)


def test_of_equal_errors_of_several_ranks_one_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    messages = _Messages()
    for line in ("step 5", "foveal: rank 1: too large", "foveal: too large", "a traceback"):
        messages.add(f"{line}\n")
    assert messages.last == "rank 1: too large"
    messages.add("foveal: rank 0 was ended by SIGKILL\n")
    assert messages.last == "rank 0 was ended by SIGKILL"
    assert capsys.readouterr().err.splitlines() == ["step 5", "a traceback", "rank 1: too large"]
