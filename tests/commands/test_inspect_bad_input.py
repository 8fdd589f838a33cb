"""What `foveal inspect` and `run.inspect` can't use: one plain line before any work, and nothing written."""

import shutil
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import foveal
from foveal.core.errors import UserError
from foveal.inspection.files import SUFFIXES
from tests.support.command_line import refuse, relative_paths, succeed

FILES = {
    "missing/x{}": "no folder missing; make it first",
    "text.txt/x{}": "no folder text.txt; make it first",
    "folder{}": "a folder; name a file",
}
"""Names of files that can't be written, and why."""


@pytest.mark.parametrize(("name", "reason"), FILES.items())
def test_a_file_is_checked_before_the_work(run: Path, name: str, reason: str) -> None:
    picture = foveal.load(run).inspect("samples")
    for suffix in SUFFIXES:
        Path(f"folder{suffix}").mkdir()
    before = relative_paths(Path())
    with patch("foveal.commands.inspect_view.compute_view", side_effect=AssertionError("computed")):
        for suffix in SUFFIXES:
            assert reason in refuse("inspect", run, "samples", "--out", name.format(suffix))
    with patch("foveal.commands.inspect_report.compute_views", side_effect=AssertionError("computed")):
        assert reason in refuse("inspect", run, "--report", name.format(".html"))
    for suffix in SUFFIXES:
        with pytest.raises(UserError, match=reason):
            picture.save(name.format(suffix))
    assert relative_paths(Path()) == before


def test_a_name_with_nul_is_refused_in_python(run: Path) -> None:
    with pytest.raises(UserError, match="can't hold the character NUL"):
        foveal.load(run).inspect("samples").save("a\0b.json")


def test_a_report_is_one_file(run: Path) -> None:
    assert "leave out --out" in refuse("inspect", run, "--report", "x.html", "--out", "views")
    assert not Path("views").exists()
    assert not Path("x.html").exists()


@pytest.mark.parametrize("arguments", [(), ("--report", "x.html"), ("curves",)])
@pytest.mark.parametrize("name", ["runs/nothing", "text.txt"])
def test_a_path_that_is_no_run(run: Path, name: str, arguments: tuple[str, ...]) -> None:
    expected = "not a Foveal run" if Path(name).exists() else "no such run"
    assert f"{name}: {expected}" in refuse("inspect", name, *arguments)
    assert "lenet-5: no such run" in refuse("inspect", "lenet-5", "--report", "x.html")


def test_data_that_are_gone_are_said_to_be_the_runs(finished: Path, here: Path) -> None:
    run = Path(shutil.copytree(finished, here / "moved"))
    data = finished.parent / "text.txt"
    content = data.read_bytes()
    data.unlink()
    try:
        line = refuse("inspect", run, "activations")
        assert f"{data}: gone, and {run} was trained on it; restore it, or name other data" in line
        assert succeed("inspect", run, "candidates", "--text", "the", "--tokens", "2")
        assert succeed("inspect", run, "activations", "--data", "text.txt")
    finally:
        data.write_bytes(content)


def test_a_line_that_a_training_is_writing_is_left_out(run: Path) -> None:
    log = run / "metrics.jsonl"
    whole = succeed("inspect", run, "curves", "--json").out
    log.write_bytes(log.read_bytes() + b'{"kind": "step", "st')
    assert succeed("inspect", run, "curves", "--json").out == whole
    log.write_bytes(log.read_bytes() + b"\n")
    assert "damaged" in refuse("inspect", run, "curves")


def test_a_run_copied_without_its_checkpoints_has_the_kept_weights(run: Path) -> None:
    shutil.rmtree(run / "checkpoints")
    assert "the kept weights" in succeed("inspect", run, "updates").out


@pytest.mark.parametrize(
    ("view", "options", "problem"),
    [
        ("candidates", {"text": 3}, "text=3: expected a text or None"),
        ("candidates", {"tokens": "3"}, "tokens='3': expected a whole number"),
        ("candidates", {"tokens": 2.5}, "tokens=2.5: expected a whole number"),
        ("candidates", {"temperature": float("nan")}, "nan: expected a finite number"),
        ("candidates", {"seed": 2**70}, "expected a number of at most"),
        ("curves", {"with_": 3}, "with_=3: expected"),
        ("curves", {"with_": "missing"}, "missing: no such run"),
        ("curves", {"with_": [Path("missing")]}, "missing: no such run"),
    ],
)
def test_values_of_python_are_checked(run: Path, view: str, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError) as error:
        foveal.load(run).inspect(view, **options)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)
