"""The run folder: whole or not there, and every edit is noticed."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foveal.core.errors import RunFailed, UserError
from foveal.store import durable
from foveal.store.dataclass_tables import dataclass_from_dict, dataclass_to_dict
from foveal.store.manifest import data_facts
from foveal.store.plan import Plan, Plans
from foveal.store.run import RunFolder, check_resumable, create_run, open_run, run_lock
from foveal.store.run_paths import default_run_path
from foveal.store.sealed_json import open_json, seal_json
from foveal.training.snapshot import TrainingCounters
from tests.support.toy_training import new_run, toy_config


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return new_run(tmp_path / "runs" / "one", toy_config())


def test_reads_back_what_was_written(run: RunFolder) -> None:
    again = open_run(run.path)
    assert again == run
    assert again.config == toy_config()
    assert again.manifest["data"] == {"characters": 100}
    assert again.manifest.keys() == {"format", "foveal", "torch", "threads", "files", "data"}
    assert (again.processor_folder / "text" / "tokenizer.json").read_bytes() == b'{"kind": "character"}'
    assert again.fingerprint == run.fingerprint


def test_a_copy_elsewhere_works(run: RunFolder, tmp_path: Path) -> None:
    shutil.copytree(run.path, tmp_path / "elsewhere")
    assert open_run(tmp_path / "elsewhere").fingerprint == run.fingerprint


def test_the_plan_goes_through_the_disk(run: RunFolder) -> None:
    assert run.read_plans().newest is None
    run.write_plans(Plans((Plan(10, 5, 2),)))
    assert run.read_plans() == Plans((Plan(10, 5, 2),))
    (run.path / "plan.json").write_text('{"total_steps": 10}')
    with pytest.raises(UserError, match="damaged or edited"):
        run.read_plans()


def test_the_keys_of_files_stay_whatever_the_fields_are_called(run: RunFolder) -> None:
    """Plans and checkpoints of runs made before are read by these keys."""
    run.write_plans(Plans((Plan(10, 5, 2),)))
    plan = open_json((run.path / "plan.json").read_bytes(), "")
    assert plan == {"total_steps": 10, "decay_start": 5, "decided": 2}
    counters = dataclass_to_dict(TrainingCounters())
    known = ("step", "tokens", "seconds", "refused", "evaluated", "previewed", "best_step", "best_loss")
    assert tuple(counters) == (*known, "stale", "finished")
    assert dataclass_from_dict(TrainingCounters, counters, "") == TrainingCounters()


def test_an_existing_folder_is_refused_and_left_alone(run: RunFolder, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    with pytest.raises(UserError, match=f"choose another --run, or continue it: foveal resume {run.path}"):
        new_run(run.path, toy_config())
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="exists"):
        new_run(tmp_path / "empty", toy_config())


def test_a_place_that_can_not_be_written_is_the_users(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="choose another --run"):
        new_run(tmp_path / "file" / "run", toy_config())


def test_half_a_run_folder_is_never_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, written = durable.write_synced, []

    def full(path: Path, content: bytes) -> None:
        real(path, content)
        written.append(path)
        if len(written) == 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable, "write_synced", full)
    with pytest.raises(RunFailed, match="No space left"):
        new_run(tmp_path / "runs" / "one", toy_config())
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda path: (path / "run.json").unlink(), "not a Foveal run"),
        (lambda path: (path / "run.json").write_text("{}"), "damaged or edited"),
        (lambda path: (path / "run.json").write_bytes(seal_json({"format": "x"})), "not that of a run"),
        (lambda path: append(path / "config.toml", b"# mine\n"), "config.toml: edited since"),
        (lambda path: append(path / "inputs/text/tokenizer.json", b" "), "tokenizer.json: edited since"),
        (lambda path: (path / "inputs/text/tokenizer.json").unlink(), "tokenizer.json: missing"),
        (lambda path: newer(path / "run.json"), "newer version of Foveal"),
    ],
)
def test_foreign_edited_and_newer_runs_are_told(run: RunFolder, edit: object, message: str) -> None:
    edit(run.path)  # type: ignore[operator]
    with pytest.raises(UserError, match=message) as error:
        open_run(run.path)
    assert "\n" not in str(error.value)
    assert str(run.path) in str(error.value)


def append(path: Path, content: bytes) -> None:
    path.write_bytes(path.read_bytes() + content)


def newer(path: Path) -> None:
    path.write_bytes(seal_json(open_json(path.read_bytes(), "") | {"format": 3}))


@pytest.mark.parametrize("name", ["metrics.jsonl", "samples.jsonl", "checkpoints"])
def test_a_shipped_run_opens_and_only_resuming_needs_the_rest(run: RunFolder, name: str) -> None:
    path = run.path / name
    path.rmdir() if name == "checkpoints" else path.unlink()
    opened = open_run(run.path)
    with pytest.raises(UserError, match=f"{name}: missing, so training can't continue"):
        check_resumable(opened)


def replace_by_link(path: Path) -> None:
    """Move a file away, and leave a link to its new place."""
    outside = path.parents[2] / f"outside-{path.name}"
    path.rename(outside)
    path.symlink_to(outside)


def replace_by_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("replace", [replace_by_link, replace_by_fifo])
@pytest.mark.parametrize("name", ["run.json", "config.toml", "metrics.jsonl", "samples.jsonl", "plan.json"])
def test_every_file_of_a_run_is_a_regular_file(
    run: RunFolder, replace: Callable[[Path], None], name: str
) -> None:
    """A link would be read and written outside of the run; a FIFO would be waited for."""
    run.write_plans(Plans((Plan(10, 5, 2),)))
    replace(run.path / name)
    with pytest.raises(UserError, match=rf"{name}: a (link|special file), but a run has only files"):
        open_run(run.path)


def test_links_in_folders_of_a_run(run: RunFolder, tmp_path: Path) -> None:
    """Only `checkpoints` may be a link, to a folder."""
    (tmp_path / "disk").mkdir()
    run.checkpoints.rmdir()
    run.checkpoints.symlink_to(tmp_path / "disk")
    check_resumable(open_run(run.path))
    run.processor_folder.rename(tmp_path / "inputs")
    run.processor_folder.symlink_to(tmp_path / "inputs")
    with pytest.raises(UserError, match=r"inputs: a link, but a run has only files of its own"):
        open_run(run.path)


HOSTILE_VALUES: tuple[Any, ...] = (None, True, -1, 2.5, "x", [], {}, [[[]]], {"a": {"a": []}}, 10**30)


@pytest.mark.parametrize("value", HOSTILE_VALUES, ids=str)
def test_resealed_manifests_of_wrong_types(run: RunFolder, value: object) -> None:
    """Whoever edits a file can seal it again; then types and names are checked."""
    path = run.path / "run.json"
    facts = open_json(path.read_bytes(), "")
    for key in facts:
        path.write_bytes(seal_json(facts | {key: value}))
        try:
            opened = open_run(run.path)
            opened.read_plans()
            data_facts(opened.manifest, run.path)
        except UserError as error:
            assert "run.json" in str(error) or "newer version" in str(error)  # noqa: PT017
        else:
            assert type(value) is type(facts[key])
    path.write_bytes(seal_json(facts | {"files": {"../secret": "x"}}))
    with pytest.raises(UserError, match=r"names '\.\./secret', which is no file of a run"):
        open_run(run.path)


@pytest.mark.parametrize("value", HOSTILE_VALUES, ids=str)
def test_resealed_plans_of_wrong_types(run: RunFolder, value: object) -> None:
    plan = dataclass_to_dict(Plan(10, 5, 2))
    for key in plan:
        (run.path / "plan.json").write_bytes(seal_json(plan | {key: value}))
        if type(value) is int:
            continue
        with pytest.raises(UserError, match=rf"plan\.json: {key} has a value that Foveal does not write"):
            run.read_plans()


def test_no_run_at_all(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing: no such run$"):
        open_run(tmp_path / "nothing")
    with pytest.raises(UserError, match=r"not a Foveal run: it has no run\.json$"):
        open_run(tmp_path)


def test_a_misspelt_run_is_told_with_the_nearest(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    create_run(Path("runs/text-demo-1"), toy_config(), "", {}, {})
    create_run(Path("runs/text-lstm-2"), toy_config(), "", {}, {})
    for name in ("runs/text-dmo-1", "text-demo-1"):
        with pytest.raises(UserError, match=rf"{name}: no such run; did you mean 'runs/text-demo-1'\?"):
            open_run(Path(name))
    with pytest.raises(UserError, match=r"x: no such run; known: run.*, runs/text-demo-1, runs/text-lstm-2"):
        open_run(Path("x"))


def test_every_flipped_byte_of_run_json_is_found(run: RunFolder) -> None:
    path = run.path / "run.json"
    content = path.read_bytes()
    for position in range(len(content)):
        spoilt = bytearray(content)
        spoilt[position] ^= 0x01
        path.write_bytes(spoilt)
        with pytest.raises(UserError):
            open_run(run.path)


def test_a_config_of_another_version_is_one_plain_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_run(tmp_path / "run", toy_config(), "[training]\nold_key = 1\n", {}, {})
    with pytest.raises(UserError, match=r"config\.toml: unknown key 'training\.old_key'"):
        open_run(tmp_path / "run")


def test_default_names_are_free_and_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_run_path("some dir/My Text.txt", "lstm", tmp_path) == tmp_path / "My-Text-lstm-1"
    (tmp_path / "shakespeare-demo-1").mkdir()
    (tmp_path / "shakespeare-demo-2").mkdir()
    assert default_run_path("shakespeare", "presets/demo.toml", tmp_path) == tmp_path / "shakespeare-demo-3"
    assert default_run_path("a", "b").parent == Path("runs")
    (tmp_path / "films" / "raw").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "films")
    for data in (".", "raw/.."):
        assert default_run_path(data, "demo") == Path("runs/films-demo-1")


def test_one_process_trains_a_run(run: RunFolder) -> None:
    """A second trainer of the same folder is refused, and may begin when the first one ends."""
    with run_lock(run), pytest.raises(UserError, match="another process is training this run"), run_lock(run):
        pass
    with run_lock(run):
        pass
