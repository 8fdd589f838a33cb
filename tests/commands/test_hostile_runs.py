"""Runs whose parts lead elsewhere, or that somebody has edited and sealed again: one line, no harm."""

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest

from foveal.store.sealed import open_json, seal_json
from tests.support.command_line import TINY_MODEL, refuse, run_command, succeed


@pytest.fixture
def stopped(run: Path) -> Path:
    """A run whose report is not made yet, so that it can be resumed."""
    (run / "curves.png").unlink()
    return run


@pytest.mark.parametrize(
    "name",
    ["metrics.jsonl", "samples.jsonl", "model.safetensors", ".model.safetensors.part", "curves.png", "mine"],
)
@pytest.mark.parametrize("command", ["resume", "evaluate", "generate"])
def test_a_link_in_a_run_is_not_followed(stopped: Path, name: str, command: str) -> None:
    diary = Path("diary.txt")
    diary.write_text("dear diary")
    (stopped / name).unlink(missing_ok=True)
    (stopped / name).symlink_to(diary.absolute())
    assert f"run/{name}: a link, but a run has only files of its own" in refuse(command, stopped)
    assert diary.read_text() == "dear diary"


@pytest.mark.parametrize("name", ["metrics.jsonl", "model.safetensors", "inputs/text/tokenizer.json"])
def test_a_fifo_in_a_run_is_not_waited_for(stopped: Path, name: str) -> None:
    (stopped / name).unlink()
    os.mkfifo(stopped / name)
    assert f"run/{name}: a special file" in refuse("resume", stopped)


def test_checkpoints_on_a_larger_disk(here: Path) -> None:
    """A user's link is respected, and what else is there stays."""
    tiny = ("text.txt", *TINY_MODEL, "training.checkpoint_seconds=0.001")
    succeed("train", *tiny, "--budget", "2steps", "--run", "first")
    disk = Path("disk")
    (disk / "1").mkdir(parents=True)
    (disk / "1" / "photo.jpg").write_bytes(b"mine")
    Path("first/checkpoints").rename("away")
    Path("first/checkpoints").symlink_to(disk.absolute())
    Path("first/curves.png").unlink()
    for path in Path("away").iterdir():
        path.rename(disk / path.name)
    assert Path("first/checkpoints").is_symlink()
    succeed("resume", "first")
    assert (disk / "1" / "photo.jpg").read_bytes() == b"mine"


def test_one_changed_digit_of_a_log_is_found(stopped: Path) -> None:
    """Before, a run trained to its end on a damaged log, and then had no result."""
    log = stopped / "metrics.jsonl"
    content = log.read_bytes()
    for damaged in (content.replace(b'"step": 3', b'"step": 8', 1), content.replace(b"{", b"\xff", 1)):
        log.write_bytes(damaged)
        assert "metrics.jsonl: its lines are not those that its checkpoint" in refuse("resume", stopped)


def test_the_result_comes_before_the_curves(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that was damaged after it was checked costs the picture alone."""
    from foveal.api.training import report as training_report

    def damage(run: Path, *rest: object) -> None:
        content = (stopped / "metrics.jsonl").read_bytes()
        (stopped / "metrics.jsonl").write_bytes(content.replace(b"{", b"[", 1))

    monkeypatch.setattr(training_report, "load_run_weights", lambda run, task: damage(run))
    result = run_command("resume", stopped, "--json")
    assert result.code == 2
    assert json.loads(result.out)["steps"] == 20
    assert "metrics.jsonl, line 1: damaged, so the run has no curves" in result.last


def reseal(run: Path, name: str, content: bytes) -> None:
    """Replace an input of a run, with a manifest that says it was always like this."""
    (run / name).write_bytes(content)
    facts = open_json((run / "run.json").read_bytes(), "")
    facts["files"][name] = sha256(content).hexdigest()
    (run / "run.json").write_bytes(seal_json(facts))


DEEP = b"[" * 100_000
CONTENTS = (
    b"",
    b"{}",
    b"[]",
    b"3",
    b"null",
    b'"x"',
    b"[[]]",
    b'{"kind": []}',
    b"\xff",
    DEEP,
    b'{"a":' * 50_000,
)


@pytest.mark.parametrize("content", CONTENTS, ids=range(len(CONTENTS)))
@pytest.mark.parametrize("name", ["inputs/text/tokenizer.json", "config.toml"])
def test_resealed_inputs_of_wrong_types(stopped: Path, name: str, content: bytes) -> None:
    reseal(stopped, name, content)
    for command in ("resume", "evaluate", "generate"):
        assert f"{Path(name).name}: " in refuse(command, stopped) or name == "config.toml"


def test_a_config_with_a_key_of_20000_parts(stopped: Path) -> None:
    reseal(stopped, "config.toml", b".".join([b"a"] * 20_000) + b" = 1")
    assert "config.toml: line 1: over 200 dots, too many for the key of a setting" in refuse(
        "resume", stopped
    )
    assert "over 200 dots" in refuse("train", "text.txt", ".".join(["a"] * 20_000) + "=1")


@pytest.mark.parametrize("value", [None, True, -1, 2.5, "x", [], {}, [[]], {"a": {}}], ids=str)
def test_resealed_states_of_wrong_types(stopped: Path, value: object) -> None:
    """Every field of state.json and of its parts, in the manifest of the checkpoint as it should be."""
    (folder,) = (path for path in (stopped / "checkpoints").iterdir() if path.name == "20")
    for other in (stopped / "checkpoints").iterdir():
        if other != folder:
            other.rename(stopped / f"checkpoints/{other.name}.away")
    state = open_json((folder / "state.json").read_bytes(), "")
    manifest = open_json((folder / "manifest.json").read_bytes(), "")
    for key in state:
        content = seal_json(state | {key: value})
        facts = {"bytes": len(content), "sha256": sha256(content).hexdigest()}
        files = manifest["files"] | {"state.json": facts}
        (folder / "state.json").write_bytes(content)
        (folder / "manifest.json").write_bytes(seal_json(manifest | {"files": files}))
        if type(value) is type(state[key]) or (key, value) == ("plan", None):
            continue
        assert "checkpoints/20" in refuse("resume", stopped)
