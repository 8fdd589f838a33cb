"""`foveal check`: right parts keep every law, and a wrong one is named with the law that it breaks."""

import json
from pathlib import Path

import pytest

from tests.support import wrong_parts
from tests.support.command_line import refuse, run_command, succeed
from tests.support.own_cell import PATH
from tests.support.plugin_files import install, write_cell
from tests.support.wrong_mixers import HEADER, WRONG

pytestmark = pytest.mark.usefixtures("own_registries")
EXAMPLE = PATH.parent / "plugin/plugin_example"


@pytest.mark.parametrize("path", [PATH, EXAMPLE], ids=["cell", "package"])
def test_the_examples_keep_every_law(path: Path) -> None:
    result = succeed("check", path, "--json")
    laws = json.loads(result.out)["laws"]
    assert len(laws) >= 10
    assert "BROKEN" not in {law["verdict"] for law in laws}
    kinds = {"mixer"} if path == PATH else {"mixer", "encoder", "head", "model", "view"}
    assert {law["part"].split()[0] for law in laws if law["holds"]} == kinds


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_mixer_is_named_with_the_law_that_it_breaks(name: str, here: Path) -> None:
    text, law, words = WRONG[name]
    (here / "wrong.py").write_text(HEADER + text)
    result = run_command("check", "wrong.py", "--json")
    assert result.code == 1
    (broken,) = [each for each in json.loads(result.out)["laws"] if each["law"] == law]
    assert not broken["holds"]
    assert words in broken["problem"]
    assert broken["difference"] > 1e-3
    assert f"foveal: wrong.py: mixer {name} breaks '" in result.last
    assert "largest difference" in result.last


@pytest.mark.parametrize("kind", wrong_parts.PARTS)
def test_a_part_that_keeps_state_is_named_so_before_all_else(kind: str, here: Path) -> None:
    (here / "wrong.py").write_text(wrong_parts.keeps_state(kind))
    result = run_command("check", "wrong.py")
    assert result.code == 1
    assert f"wrong.py: {kind} mine breaks 'keeps nothing between calls': a second call" in result.last
    (here / "mine.py").write_text(wrong_parts.right(kind).replace('"mine"', '"right"'))
    assert "BROKEN" not in succeed("check", "mine.py").out


def test_a_class_that_is_not_registered_is_checked_by_its_name(here: Path) -> None:
    text = write_cell(here / "mine.py").read_text().replace('@foveal.register_mixer("tanh-cell")', "")
    (here / "mine.py").write_text(text)
    assert "registers no parts (docs/plugins.md); mine.py:Cell checks a class" in refuse("check", "mine.py")
    assert "did you mean 'Cell'?" in refuse("check", "mine.py:Cel")
    laws = json.loads(succeed("check", "mine.py:Cell", "--json").out)["laws"]
    assert {(law["part"], law["holds"]) for law in laws} == {("mixer Cell", True)}


def test_a_part_that_fails_is_told_with_its_line(here: Path) -> None:
    write_cell(here / "mine.py").write_text((here / "mine.py").read_text().replace("tanh()", "tanhh()"))
    result = run_command("check", "mine.py")
    assert result.code == 1
    assert "mine.py:18: AttributeError: 'Tensor' object has no attribute 'tanhh'" in result.last


def test_an_installed_plugin_is_checked_by_its_name(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(here)
    write_cell(here / "installed_checked.py")
    install(monkeypatch, "installed_checked")
    assert "BROKEN" not in succeed("check", "installed_checked-entry").out
    assert "did you mean 'installed_checked-entry'?" in refuse("check", "installed_checkd-entry")


def test_what_is_no_plugin(here: Path) -> None:
    (here / "empty.py").touch()
    assert "empty.py: registers no parts" in refuse("check", "empty.py")


@pytest.mark.parametrize("option", ["--input tokens:5", "--expect causal", "--steps 0"])
@pytest.mark.parametrize("target", ["lstm", "resnet-18", "sizes.toml", "mine.py", "mine.py:Cell"])
def test_options_that_a_target_does_not_read_are_refused(target: str, option: str, here: Path):
    (here / "sizes.toml").touch()
    write_cell(here / "mine.py")
    name, target_of_it = option.split()[0], "a run" if "steps" in option else "a module of your own"
    line = refuse("check", target, *option.split())
    assert line == f"foveal: {name} is for {target_of_it}, which {target} is not; leave it out\n"
