"""Ranks write a checkpoint in parts at once, and any number of them goes on with it."""

import errno
import os
import re
import shutil
import signal
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from foveal.core.errors import RunFailed, UserError
from foveal.core.signals import Interrupted, SignalHandler
from foveal.core.stored_tensor import StoredTensor
from foveal.distributed.sharded import ShardedRanks
from foveal.distributed.world import ONE_PROCESS, World
from foveal.store import checkpoint, durable
from foveal.store.checkpoint import load_latest
from foveal.store.durable import Chunk
from foveal.store.run import open_run
from foveal.store.sealed import seal_tensors
from foveal.store.stored_tensors import open_group
from foveal.training.trainer import Trainer
from tests.support.ranks import run_ranks
from tests.support.saved_files import contents
from tests.support.toy_training import ToyBatch, ToyBatches, ToyModel, ToyObjective, new_run, toy_config


def cut(tensor: Tensor, axis: int, sizes: list[int]) -> dict[str, bytes]:
    """Return the files of the parts of a tensor."""
    files, start = {}, 0
    for number, part in enumerate(tensor.split(sizes, axis)):
        begins = [start if each == axis else 0 for each in range(tensor.dim())]
        facts = {"parts": {"w": [begins, [*tensor.shape]]}}
        files[f"weights-{number}.safetensors"] = seal_tensors({"w": part.contiguous()}, facts)
        start += part.shape[axis]
    return files


def opened(folder: Path, files: dict[str, bytes]) -> StoredTensor:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return open_group([*folder.iterdir()])["w"]


@pytest.mark.parametrize("axis", [0, 1])
def test_parts_are_joined_and_cut_anew(tmp_path: Path, axis: int) -> None:
    whole = torch.randn(7, 8)
    stored = opened(tmp_path / "parts", cut(whole, axis, [3, 3, whole.shape[axis] - 6]))
    assert (stored.shape, stored.dtype, stored.dim()) == (whole.shape, whole.dtype, 2)
    assert torch.equal(stored.whole(), whole)
    for other in (0, 1):
        for start in range(whole.shape[other]):
            for length in range(whole.shape[other] - start):
                expected = whole.narrow(other, start, length)
                begins = [start if each == other else 0 for each in (0, 1)]
                assert torch.equal(stored.read(begins, expected.shape), expected)


def test_parts_that_are_cut_along_both_axes(tmp_path: Path) -> None:
    """Layers that are split among processes, whose parts ranks share."""
    whole = torch.randn(5, 6)
    files = {}
    for number, (rows, columns) in enumerate([((0, 3), (0, 6)), ((3, 5), (0, 2)), ((3, 5), (2, 6))]):
        part = whole[slice(*rows), slice(*columns)].contiguous()
        facts = {"parts": {"w": [[rows[0], columns[0]], [5, 6]]}}
        files[f"weights-{number}.safetensors"] = seal_tensors({"w": part}, facts)
    stored = opened(tmp_path / "parts", files)
    assert torch.equal(stored.whole(), whole)
    assert torch.equal(stored.read((2, 1), (3, 4)), whole[2:5, 1:5])
    assert stored.read((0, 0), (0, 6)).shape == (0, 6)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda files: files.pop("weights-0.safetensors"),
        lambda files: files.pop("weights-1.safetensors"),
        lambda files: files.pop("weights-2.safetensors"),
        lambda files: files.update({"weights-3.safetensors": files["weights-1.safetensors"]}),
        lambda files: files.update({"weights-1.safetensors": files["weights-2.safetensors"]}),
        lambda files: files.update({"weights.safetensors": seal_tensors({"w": torch.ones(8, 2)}, {})}),
        lambda files: files.update(cut(torch.randn(8, 2), 1, [1, 1])),
    ],
)
def test_parts_that_are_not_a_whole_are_refused(tmp_path: Path, spoil: Callable[[Any], Any]) -> None:
    files = cut(torch.randn(8, 2), 0, [3, 3, 2])
    spoil(files)
    with pytest.raises(UserError, match="a part of w is missing, or there twice"):
        opened(tmp_path / "parts", files)


class CutBatch(ToyBatch):
    """A batch of which ranks take rows."""

    @property
    def row_count(self) -> int:
        return len(self.inputs)

    def cut(self, rows: slice) -> "CutBatch":
        return CutBatch(self.inputs[rows], self.targets[rows], None)


class CutBatches(ToyBatches):
    def batch(self, epoch: int, index: int) -> CutBatch:
        batch = super().batch(epoch, index)
        return CutBatch(batch.inputs, batch.targets, None)


CONFIG = {"budget": "8steps", "evaluate_every": 3, "slots": 4, "ema_decay": 0.9, "checkpoint_seconds": 1e-9}


def trainer_of(world: World, path: Path, share: bool, precision: str = "float32") -> Trainer:
    """Return the trainer of a rank, which has all weights, or shares them."""
    torch.set_num_threads(1)
    if world.is_main and not path.exists():
        new_run(path, toy_config(training=CONFIG | {"precision": precision}))
    world.exchange(None)
    ranks = ShardedRanks(world.rank, world.size) if share and world.size > 1 else world
    model = ToyModel(norm=False)
    batches, valid = (CutBatches(per_epoch=each, rows=8, carried=False, seed=each) for each in (6, 2))
    return Trainer(open_run(path), model, ToyObjective(model), batches, valid, world=ranks)


def train_in(world: World, path: Path, share: bool, stop_at: int = 0, precision: str = "float32") -> int:
    """Train, and stop by a signal after a number of steps. Return the step at which the training began."""
    trainer = trainer_of(world, path, share, precision)
    signals, began = SignalHandler(), list[int]()
    batch = trainer.batches.batch

    def watched(epoch: int, index: int) -> Any:
        began.append(trainer.state.counters.step)
        if stop_at and index + 6 * epoch == stop_at - 1:
            signals.pending = signal.SIGTERM
        return batch(epoch, index)

    trainer.batches = SimpleNamespace(batch=watched, per_epoch=6)
    with pytest.raises(Interrupted) if stop_at else nullcontext():
        trainer.run(signals)
    return began[0]


def restore_on_rank(world: World, path: Path) -> None:
    """Restore the newest checkpoint on a rank, which writes a file only if it is the main rank."""
    trainer = trainer_of(world, path, True)
    if not world.is_main:
        durable.atomic_write = lambda *_: pytest.fail("only the main rank writes")
    trainer.files.restore()
    assert (trainer.state.best is not None) == world.is_main


def saved_in(path: Path) -> dict[str, bytes]:
    saved, damaged = load_latest(path / "checkpoints")
    assert not damaged
    return contents(saved)


def joined(path: Path) -> dict[str, Tensor]:
    """Return all tensors of the newest checkpoint of a run."""
    saved, _ = load_latest(path / "checkpoints")
    assert saved
    groups = {group: open_group(saved.paths(group)) for group in ("weights", "optimizer", "average")}
    return {
        f"{group}/{name}": value.whole() for group, values in groups.items() for name, value in values.items()
    }


def check_close(path: Path, other: Path, tolerance: float = 1e-5) -> None:
    first, second = joined(path), joined(other)
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert value.dtype == second[name].dtype
        assert torch.allclose(value, second[name], atol=tolerance), name


@pytest.mark.parametrize(
    ("precision", "tolerance"), [("float32", 1e-5), pytest.param("bfloat16", 1e-3, marks=pytest.mark.slow)]
)
def test_ranks_that_share_the_weights_write_their_parts(
    tmp_path: Path, precision: str, tolerance: float
) -> None:
    """A single process goes on; and again two ranks, which end bit for bit as two that did not stop."""
    run_ranks(2, train_in, tmp_path / "whole", True, 0, precision)
    run_ranks(2, train_in, tmp_path / "stopped", True, 4, precision)
    parts = {
        f"{group}-{part}.safetensors" for group in ("weights", "optimizer", "average") for part in (0, 1)
    }
    others = {"state.json", "carry.safetensors", "best.safetensors"}
    assert saved_in(tmp_path / "stopped").keys() == parts | others
    shutil.copytree(tmp_path / "stopped", tmp_path / "alone")
    (tmp_path / "stopped" / "model.safetensors").unlink()
    run_ranks(2, restore_on_rank, tmp_path / "stopped")
    assert (tmp_path / "stopped" / "model.safetensors").exists()
    assert run_ranks(2, train_in, tmp_path / "stopped", True) == [4, 4]
    assert (tmp_path / "stopped" / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()
    first, second = saved_in(tmp_path / "stopped"), saved_in(tmp_path / "whole")
    assert all(first[name] == second[name] for name in parts)
    assert train_in(ONE_PROCESS, tmp_path / "alone", False) == 4
    assert "weights.safetensors" in saved_in(tmp_path / "alone")
    check_close(tmp_path / "alone", tmp_path / "whole", tolerance)


@pytest.mark.slow
def test_ranks_with_all_weights_take_turns_with_the_files(tmp_path: Path) -> None:
    """What one wrote, any number reads: the ends are bit for bit the same."""
    train_in(ONE_PROCESS, tmp_path / "one", False)
    run_ranks(2, train_in, tmp_path / "two", False, 4)
    run_ranks(4, train_in, tmp_path / "two", False, 6)
    assert train_in(ONE_PROCESS, tmp_path / "two", False) == 6
    first, second = saved_in(tmp_path / "one"), saved_in(tmp_path / "two")
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == ["state.json"], "times differ"


def full_disk(world: World, run: Path, name: str) -> None:
    """Train on a rank which can't write a file. Note why it ends, at once, as the process of a command."""
    real = durable.write_synced

    def full(path: Path, *chunks: Chunk) -> None:
        if path.name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, *chunks)

    durable.write_synced = full
    try:
        trainer_of(world, run, True).run(SignalHandler())
    except RunFailed as failed:
        (run.parent / f"end-{world.rank}").write_text(str(failed))
        os._exit(1)


def held_rank(world: World, run: Path) -> list[bool]:
    """Return for each step whether there was a checkpoint, while rank 1 takes its time to write its part."""
    trainer = trainer_of(world, run, True)
    may_go_on, real, seen = Event(), durable.write_synced, list[bool]()

    def held(path: Path, *chunks: Chunk) -> None:
        if path.name == "optimizer-1.safetensors":
            assert may_go_on.wait(20)
        real(path, *chunks)

    durable.write_synced = held
    trainer._saving.interval = 1e9
    batch = trainer.batches.batch

    def watched(epoch: int, index: int) -> Any:
        step = index + 6 * epoch
        seen.append(bool(load_latest(run / "checkpoints")[0]))
        if step == 2:
            trainer._saving.interval = 1e-9
        if step == 3:
            trainer._saving.interval = 1e9
        if step == 6:
            may_go_on.set()
            trainer.files._background.wait()
        if step == 7:
            trainer.files._background.wait()
        return batch(epoch, index)

    trainer.batches = SimpleNamespace(batch=watched, per_epoch=6)
    trainer.valid = None
    try:
        trainer.run(SignalHandler())
    finally:
        durable.write_synced = real
    return seen


def test_a_checkpoint_is_complete_when_the_last_rank_has_written(tmp_path: Path) -> None:
    seen, _ = run_ranks(2, held_rank, tmp_path / "run")
    assert seen == [False] * 8
    assert saved_in(tmp_path / "run")


def draft(folder: Path, step: int, listed: int = 2) -> Path:
    """Write a checkpoint of two ranks."""
    new = checkpoint.Draft(folder, step, "run")
    files = cut(torch.full((4, 2), float(step)), 0, [2, 2])
    listings = [
        checkpoint.write_files(new.part, new.path, [(name, [content])]) for name, content in files.items()
    ]
    return new.publish(listings[:listed], None)


@pytest.mark.parametrize("fault", ["missing", "flipped", "of another step", "cut short"])
def test_a_part_that_is_spoilt_is_found(tmp_path: Path, fault: str) -> None:
    draft(tmp_path, 2)
    shutil.copytree(tmp_path / "2", tmp_path / "kept")
    newest = draft(tmp_path, 4)
    shutil.copytree(tmp_path / "kept", tmp_path / "2")
    file = newest / "weights-1.safetensors"
    content = file.read_bytes()
    if fault == "missing":
        file.unlink()
    elif fault == "flipped":
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif fault == "of another step":
        shutil.copy(tmp_path / "2" / file.name, file)
    else:
        file.write_bytes(content[:-1])
    found, damaged = load_latest(tmp_path)
    assert found
    assert found.path.name == "2"
    assert str(file) in damaged[0]


def test_a_part_that_no_rank_has_listed_is_missed(tmp_path: Path) -> None:
    draft(tmp_path, 2, listed=1)
    found, _ = load_latest(tmp_path)
    assert found
    with pytest.raises(UserError, match="a part of w is missing"):
        open_group(found.paths("weights"))


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_full_disk_of_one_rank_ends_all(tmp_path: Path, rank: int) -> None:
    with pytest.raises(BrokenProcessPool):
        run_ranks(2, full_disk, tmp_path / "run", f"weights-{rank}.safetensors")
    (end,) = tmp_path.glob("end-*")
    assert end.name == f"end-{rank}"
    assert re.search(r"checkpoints/\d: can't write: No space left on device", end.read_text())
    assert load_latest(tmp_path / "run" / "checkpoints") == (None, [])
