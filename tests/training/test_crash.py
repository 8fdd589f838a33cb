"""Whatever happens to the disk, a run loads its old checkpoint or its new one, and damage is found."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from foveal.core.errors import RunFailed, UserError
from foveal.core.signals import SignalHandler
from foveal.store import durable
from foveal.store.checkpoint import load_latest
from foveal.store.metrics_log import JsonlLog
from foveal.store.run import open_run
from foveal.store.sealed import open_json, open_tensors, seal_json
from foveal.training.trainer import Trainer
from tests.support.disk_model import Op, crash_states, record_disk_operations
from tests.support.run_fingerprint import differences, fingerprint
from tests.support.saved_files import contents, save_files
from tests.support.toy_training import toy_config, toy_trainer, train


class Stop(BaseException):
    pass


def run_until(path: Path, step: int, then: Callable[[Trainer], None], began: int = 0) -> Trainer:
    """Train to `step`, saving at steps 2 and 4, call `then` between two steps, and stop."""
    trainer = toy_trainer(path, toy_config(training={"budget": "9steps", "evaluate_every": 3}))

    def hook(where: str, calls: int) -> None:
        done = began + calls - 1
        if where == "train" and done in (2, 4) and began < done < step:
            trainer.save()
        if where == "train" and done == step:
            then(trainer)
            raise Stop

    trainer.objective.hook = hook
    with pytest.raises(Stop):
        trainer.run(SignalHandler())
    return trainer


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, list[Op]]:
    """A run with checkpoints 2 and 4, a copy from before, and the operations from step 5's evaluation
    (which finds new best weights) through the saving of step 6, which removes checkpoint 2."""
    path, before = tmp_path / "run", tmp_path / "before"
    ops: list[Op] = []

    def look_and_save(trainer: Trainer) -> None:
        shutil.copytree(path, before)
        with monkeypatch.context() as patch:
            recorder = record_disk_operations(patch)
            for log in trainer.state.logs.values():
                assert isinstance(log, JsonlLog)
                recorder._paths[log._descriptor] = str(log.path)
            trainer.state.counters.step += 1
            trainer.state.counters.best_loss = 1e9
            trainer._evaluate_and_preview()
            assert trainer.state.plan
            trainer.folder.write_plans(trainer.state.plans)
            trainer.save()
            ops.extend(recorder.ops)

    run_until(path, 5, look_and_save)
    return path, before, ops


def broken(path: Path, before: Path, ops: list[Op], scratch: Path) -> Iterator[tuple[int, str]]:
    """The crash states that do not load exactly the old or exactly the new checkpoint, and the new one
    once all is done."""
    old, new = load_latest(before / "checkpoints")[0], load_latest(path / "checkpoints")[0]
    assert old and new and old.path.name == "4" and new.path.name == "6"  # noqa: PT018
    scratch.mkdir()
    for count, mode, state in crash_states(before, path, ops, scratch):
        try:
            found, damaged = load_latest(state / "checkpoints")
            assert found is not None
            assert not damaged
            assert found.files in ((old.files, new.files) if count < len(ops) else (new.files,))
            offset = open_json(found.files["state.json"].read(), "")["metrics"]
            assert (state / "metrics.jsonl").stat().st_size >= offset
            open_run(state).read_plans()
            open_tensors((state / "model.safetensors").read_bytes(), "")
        except (UserError, AssertionError):
            yield count, mode
        shutil.rmtree(state)


def test_every_prefix_of_a_save_loads_the_old_or_the_new(
    saved: tuple[Path, Path, list[Op]], tmp_path: Path
) -> None:
    path, before, ops = saved
    kinds = [op[0] for op in ops]
    assert kinds.count("fsync") >= 12
    assert "unlink" in kinds, "nothing was removed"
    assert list(broken(path, before, ops, tmp_path / "states")) == []
    assert sorted(p.name for p in (path / "checkpoints").iterdir()) == ["4", "6"]


def is_folder(path: str) -> bool:
    """`.6.<run>.part` is a folder, `.model.safetensors.part` a file."""
    name = Path(path).name
    return "." not in name or name[1:2].isdigit()


def removal_first(ops: list[Op]) -> list[Op]:
    """Checkpoint 4 goes, too, and before 6 has its name."""
    start = next(i for i, op in enumerate(ops) if op[0] == "rename" and op[2].endswith("/6"))
    manifest = ops[start][2].removesuffix("6") + "4/manifest.json"
    return [*ops[:start], ("unlink", manifest), *ops[start:]]


def rename_first(ops: list[Op]) -> list[Op]:
    """Rename the folder before its files are synced to the disk."""
    rename = next(op for op in ops if op[0] == "rename" and op[2].endswith("/6"))
    temporary = rename[1]
    start = next(i for i, op in enumerate(ops) if op[:2] == ("mkdir", temporary)) + 1
    rest = [op for op in ops[start:] if op != rename]
    rest = [(op[0], op[1].replace(temporary, rename[2]), *op[2:]) for op in rest]
    return [*ops[:start], rename, *rest]


PLANTED: dict[str, Callable[[list[Op]], list[Op]]] = {
    "files not fsynced": lambda ops: [op for op in ops if op[0] != "fsync" or is_folder(op[1])],
    "folders not fsynced": lambda ops: [op for op in ops if op[0] != "fsync" or not is_folder(op[1])],
    "name not fsynced": lambda ops: [
        op for op in ops if op[:1] != ("fsync",) or op[1][-11:] != "checkpoints"
    ],
    "log not fsynced": lambda ops: [
        op for op in ops if op[:1] != ("fsync",) or op[1][-13:] != "metrics.jsonl"
    ],
    "old ones removed first": removal_first,
    "renamed before written": rename_first,
}


@pytest.mark.parametrize("bug", PLANTED)
def test_the_replay_sees_planted_bugs(saved: tuple[Path, Path, list[Op]], tmp_path: Path, bug: str) -> None:
    path, before, ops = saved
    assert PLANTED[bug](ops) != ops
    assert any(broken(path, before, PLANTED[bug](ops), tmp_path / "states"))


def test_a_full_disk_leaves_the_previous_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No space at every operation of an evaluation and a save, in turn; then there is room again."""
    whole = fingerprint(
        train(tmp_path / "whole", toy_config(training={"budget": "9steps", "evaluate_every": 3}))
    )

    half = tmp_path / "half"
    run_until(half, 5, lambda trainer: None)

    def fill(path: Path, fail_at: int) -> int:
        """Returns the operations that were tried."""
        tried = [0]

        def look_and_save(trainer: Trainer) -> None:
            with monkeypatch.context() as patch:
                recorder = record_disk_operations(patch, fail_at or None)
                for log in trainer.state.logs.values():
                    assert isinstance(log, JsonlLog)
                    recorder._paths[log._descriptor] = str(log.path)
                trainer.state.counters.last_eval_step = trainer.state.counters.last_preview_step = 0
                try:
                    trainer._evaluate_and_preview()
                    trainer.save()
                finally:
                    tried[0] = recorder.count

        shutil.copytree(half, path)
        full = r"can't write: No space left on device \([\d,]+ MB free\)$"
        with pytest.raises(RunFailed, match=full) if fail_at else nullcontext():
            run_until(path, 6, look_and_save, began=4)
        return tried[0]

    total = fill(tmp_path / "room", 0)
    assert total > 25
    for fail_at in range(1, total + 1):
        path = tmp_path / str(fail_at)
        assert fill(path, fail_at) == fail_at
        found, damaged = load_latest(path / "checkpoints")
        assert found
        assert damaged == []
        assert found.path.name in ("4", "6")
        assert not [p for p in path.rglob("*.part") if p.is_dir()], "half a checkpoint was left"
        if fail_at % 6 == 0 and found.path.name == "4":  # that of 6 has logged this second evaluation, too
            assert differences(fingerprint(train(path)), whole) == []
        shutil.rmtree(path)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """The checkpoints of a run: 2 and 4."""
    path = tmp_path / "run"
    run_until(path, 4, Trainer.save)
    assert sorted(p.name for p in (path / "checkpoints").iterdir()) == ["2", "4"]
    return path / "checkpoints"


def test_every_flipped_byte_is_found(two: Path) -> None:
    """Every byte of the manifest and the state, every 23rd of the tensors; the older one is used and the
    damaged one named."""
    older = load_latest(two)[0]
    assert older
    shutil.move(two / "4", two / "kept")
    expected, _ = load_latest(two)
    shutil.move(two / "kept", two / "4")
    assert expected
    positions = 0
    for file in sorted((two / "4").iterdir()):
        content = file.read_bytes()
        for position in range(0, len(content), 1 if file.suffix == ".json" else 23):
            spoilt = bytearray(content)
            spoilt[position] ^= 0x01 if position % 2 else 0xFF
            file.write_bytes(spoilt)
            found, damaged = load_latest(two)
            assert found
            assert found.files == expected.files, (file, position)
            assert len(damaged) == 1
            assert str(two / "4") in damaged[0]
            positions += 1
        file.write_bytes(content)
    assert positions > 1500
    assert load_latest(two)[1] == []


def test_every_truncation_is_found(two: Path) -> None:
    for file in sorted((two / "4").iterdir()):
        content = file.read_bytes()
        for length in (0, 1, 7, 8, 9, len(content) // 2, len(content) - 1):
            file.write_bytes(content[:length])
            found, damaged = load_latest(two)
            assert found
            assert found.path.name == "2"
            assert str(two / "4") in damaged[0]
        file.unlink()
        assert load_latest(two)[1] != [], f"{file.name} was not missed"
        file.write_bytes(content + b"\0")
        assert load_latest(two)[1] != []
        file.write_bytes(content)


def test_no_good_checkpoint_is_an_error_and_none_at_all_is_not(two: Path) -> None:
    for name in ("2", "4"):
        (two / name / "manifest.json").write_bytes(b"{}")
    with pytest.raises(UserError, match="no checkpoint can be used") as error:
        load_latest(two)
    assert str(two / "2") in str(error.value)
    assert str(two / "4") in str(error.value)
    shutil.rmtree(two / "2")
    shutil.rmtree(two / "4")
    assert load_latest(two) == (None, [])


def test_training_goes_on_from_the_older_one_and_says_so(two: Path) -> None:
    path = two.parent
    config = toy_config(training={"budget": "9steps", "evaluate_every": 3})
    whole = fingerprint(train(path.parent / "whole", config))
    weights = two / "4" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    again = train(path)
    step, _, damaged = again.recorder.begun[0]
    assert step == 2
    assert "weights.safetensors: damaged" in damaged[0]
    assert differences(fingerprint(again), whole) == []
    assert sorted(p.name for p in two.iterdir()) == ["2", "9"]


def test_pickle_is_refused_by_name(two: Path) -> None:
    import pickle

    content = pickle.dumps({"weights": [1.0]})
    for name in ("weights.pt", "weights.pkl", "../weights.safetensors"):
        files = contents(load_latest(two)[0]) | {name: content}
        if name.startswith(".."):
            (two / "weights.safetensors").write_bytes(content)
        path = save_files(two, 7, files, two / "4", "run")
        _, damaged = load_latest(two)
        assert f"{path / name}: neither safetensors nor JSON" in damaged[0]
        shutil.rmtree(path)
    files = contents(load_latest(two)[0]) | {"weights.safetensors": content}
    save_files(two, 8, files, None, "run")
    with pytest.raises(
        UserError, match=r"weights.safetensors: not a safetensors file .*pickle is never read"
    ):
        train(two.parent)


def test_a_newer_format_is_refused(two: Path) -> None:
    manifest = open_json((two / "4" / "manifest.json").read_bytes(), "")
    (two / "4" / "manifest.json").write_bytes(seal_json(manifest | {"format": 4}))
    with pytest.raises(UserError, match="newer version of Foveal"):
        load_latest(two)


def test_what_is_no_checkpoint_stays(two: Path) -> None:
    shutil.copytree(two / "4", two / "4.keep")
    save_files(two, 9, {"state.json": b"{}"}, two / "4", open_run(two.parent).fingerprint)
    assert {path.name for path in two.iterdir()} == {"4", "4.keep", "9"}


def test_folders_of_others_stay(two: Path, tmp_path: Path) -> None:
    """`checkpoints` may be a link to a place with other numbered folders, those of other runs among them."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "7").mkdir(parents=True)
    (elsewhere / "7" / "photo.jpg").write_bytes(b"?")
    (elsewhere / ".8.part").mkdir()
    run_until(tmp_path / "other", 4, Trainer.save)
    shutil.move(tmp_path / "other" / "checkpoints" / "4", elsewhere / "3")
    manifest = elsewhere / "3" / "manifest.json"
    manifest.write_bytes(seal_json(open_json(manifest.read_bytes(), "") | {"run": "another"}))
    (elsewhere / "1").symlink_to(two / "2")
    for name in ("2", "4"):
        shutil.move(two / name, elsewhere / name)
    two.rmdir()
    two.symlink_to(elsewhere)
    (elsewhere / "7").rename(elsewhere / "700")
    save_files(two, 9, {"state.json": b"{}"}, two / "4", open_run(two.parent).fingerprint)
    assert {path.name for path in elsewhere.iterdir()} == {"1", "3", "4", "9", "700", ".8.part"}
    assert (elsewhere / "700" / "photo.jpg").exists()


def test_a_checkpoint_that_was_begun_and_never_again_is_removed(two: Path) -> None:
    run = open_run(two.parent).fingerprint
    for name in (f".5.{run[:16]}.part", f".5-2.{run[:16]}.part"):
        (two / name).mkdir()
        (two / name / "weights.safetensors").write_bytes(b"half")
    save_files(two, 9, {"state.json": b"{}"}, two / "4", run)
    assert {path.name for path in two.iterdir()} == {"4", "9"}


def test_a_header_beyond_all_measure_is_refused() -> None:
    with pytest.raises(UserError, match="not a safetensors file of Foveal"):
        open_tensors((2**30).to_bytes(8, "little") + b"{" * 100, "model.safetensors")


def test_every_flipped_byte_of_the_kept_weights_is_found(two: Path) -> None:
    content = (two.parent / "model.safetensors").read_bytes()
    for position in range(len(content)):
        for mask in (0x01, 0x20, 0xFF):
            spoilt = bytearray(content)
            spoilt[position] ^= mask
            with pytest.raises(UserError):
                open_tensors(bytes(spoilt), "model.safetensors")
    for length in range(0, len(content), 3):
        with pytest.raises(UserError):
            open_tensors(content[:length], "model.safetensors")
    tensors, facts = open_tensors(content, "model.safetensors")
    assert facts["step"] == 3
    assert durable.file_sha256(two.parent / "model.safetensors")
    assert tensors.keys() == toy_trainer(two.parent).model.state_dict().keys()


def test_weights_must_fit_and_all_differences_are_listed(two: Path) -> None:
    with pytest.raises(UserError) as error:
        train(two.parent, norm=False)
    message = str(error.value)
    assert "norm.bias is not in the model" in message
    assert "norm.running_mean is not in the model" in message
    assert "\n" not in message
