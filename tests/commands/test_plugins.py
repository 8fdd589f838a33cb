"""Commands with parts of plugins: `--plugin`, references to files, and runs that keep the code."""

import json
import shutil
from pathlib import Path

import pytest

import foveal
from foveal.core.errors import UserError
from foveal.plugins import installed
from tests.support.command_line import TINY_MODEL, refuse, run_command, succeed
from tests.support.plugin_files import CELL, install, write_cell
from tests.support.registries import restored_registries

pytestmark = pytest.mark.usefixtures("own_registries")
STEPS = ("--budget", "2steps", "--run", "run")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A folder with the run `run` of a plugin's cell, and its data; the file of the plugin is not there."""
    folder = tmp_path_factory.mktemp("plugin")
    write_cell(folder / "mine.py")
    (folder / "text.txt").write_text("The cat sat on the mat.\n" * 300)
    with pytest.MonkeyPatch.context() as patch, restored_registries():
        patch.setenv("FOVEAL_CACHE", str(cache))
        patch.chdir(folder)
        settings = ("model.mixers=tanh-cell", "model.tanh_cell.scale=0.5")
        result = succeed("train", "text.txt", "--plugin", "mine.py", *settings, *TINY_MODEL, *STEPS)
        assert "foveal generate run --plugin mine.py" in result.err
    (folder / "mine.py").unlink()
    return folder


@pytest.fixture
def plugin_run(trained: Path, here: Path) -> Path:
    return Path(shutil.copytree(trained / "run", here / "run"))


def test_a_run_keeps_settings_source_and_hash(plugin_run: Path) -> None:
    manifest = json.loads((plugin_run / "run.json").read_text())
    assert "plugins/mine.py" in manifest["files"]
    assert (plugin_run / "plugins/mine.py").read_text() == CELL.format(name="tanh-cell")
    assert "[model.tanh_cell]\nscale = 0.5\n" in (plugin_run / "config.toml").read_text()


@pytest.mark.parametrize(
    "command",
    [
        "resume run",
        "evaluate run",
        "generate run",
        "predict run text.txt",
        "calibrate run text.txt",
        "inspect run",
        "inspect run --open",
        "export run folder",
        "train text.txt --from run",
    ],
)
def test_no_command_executes_it_unasked(plugin_run: Path, command: str) -> None:
    line = refuse(*command.split())
    assert (
        "run: was made with the plugin mine: read its code in run/plugins/mine.py, and give --trust-plu"
        in line
    )


def test_a_run_is_opened_with_trust_or_with_the_file(plugin_run: Path, here: Path) -> None:
    with pytest.raises(UserError, match=r"foveal\.load\(\.\.\., trust_plugin=True\)"):
        foveal.load("run")
    with restored_registries():
        assert foveal.load("run", trust_plugin=True).model.stack.blocks[0].mixer.cell.scale == 0.5
    with restored_registries(), pytest.raises(UserError, match="finished"):
        foveal.Run("run", trust_plugin=True).resume()
    write_cell(here / "mine.py")
    for options in (["--trust-plugin"], ["--plugin", "mine.py"], ["--plugin=mine.py"]):
        with restored_registries():
            assert succeed("evaluate", "run", "--json", *options).out


def test_an_edited_source_is_refused(plugin_run: Path) -> None:
    write_cell(plugin_run / "plugins/mine.py", "evil-cell")
    assert "plugins/mine.py: edited since the run was created" in refuse("evaluate", "run", "--trust-plugin")


def test_a_reference_names_a_class_of_a_file(here: Path) -> None:
    plain = CELL.replace('@foveal.register_mixer("{name}")\n', "")
    (here / "plain.py").write_text(plain)
    settings = ("model.mixers=plain.py:Cell,gru", "model.layers=2", "model.Cell.scale=0.5")
    with restored_registries():
        result = succeed("train", "text.txt", *TINY_MODEL, *settings, *STEPS)
    assert "foveal generate run --plugin plain.py" in result.err
    assert 'mixers = "Cell,gru"' in Path("run/config.toml").read_text()
    (here / "plain.py").unlink()
    with restored_registries():
        assert "read its code in run/plugins/plain.py" in refuse("generate", "run")
        succeed("generate", "run", "--tokens", 5, "--trust-plugin")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("model.mixers=mine.py:Cel", "mine.py: defines no mixer Cel; did you mean 'Cell'?"),
        ("model.mixers=mine.py:tanh-cel", "mine.py: defines no mixer tanh-cel; did you mean 'tanh-cell'?"),
        ("model.mixers=nope.py:Cell", "nope.py: no such file; a plugin is a Python file"),
        ("--plugin mine.py model.mixers=tanh-cel", "unknown mixer 'tanh-cel'; did you mean 'tanh-cell'?"),
        ("model.mixers=mine.py:Cell model.tanh_cell.sale=2", "did you mean 'model.tanh_cell.scale'?"),
        (
            "model.mixers=mine.py:Cell model.tanh_cell.scale=big",
            "model.tanh_cell.scale=big: expected a number",
        ),
        ("--plugin mine.py model.tanh_cell.scale=2", "model.tanh_cell is not read by model.mixers=lstm"),
        ("--plugin", "--plugin: name a Python file, or the folder of a package"),
        ("--plugin nope.py", "nope.py: no such file"),
        ("--plugin broken.py", "broken.py:1: the plugin fails on import: ModuleNotFoundError"),
    ],
)
@pytest.mark.usefixtures("nothing_left")
def test_what_is_wrong_is_one_line(here: Path, arguments: str, line: str) -> None:
    write_cell(here / "mine.py")
    (here / "broken.py").write_text("import nope")
    assert line in refuse("train", "text.txt", *arguments.split())


def test_an_error_inside_a_plugin_is_told_with_its_line(here: Path) -> None:
    write_cell(here / "mine.py").write_text(CELL.format(name="a").replace("tanh()", "tanhh()"))
    result = run_command("train", "text.txt", "--plugin", "mine.py", "model.mixers=a", *TINY_MODEL, *STEPS)
    assert result.code == 1
    assert "mine.py:18: AttributeError: 'Tensor' object has no attribute 'tanhh'" in result.last
    assert "(an error in a plugin: --debug shows the whole of it)" in result.last


def test_a_broken_installed_plugin_stops_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(here)
    (here / "installed_broken.py").write_text("import nope")
    install(monkeypatch, "installed_broken")
    result = succeed("data", "list")
    assert "installed_broken.py:1: the plugin fails on import" in result.err
    assert "shakespeare" in result.out
    assert installed._searched


def test_commands_without_registries_import_no_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "installed_broken")
    succeed("--help")
    assert not installed._searched


def test_names_of_plugins_are_offered_in_help_and_errors(here: Path) -> None:
    """A class that is not registered is offered, too."""
    write_cell(here / "mine.py", more="\n\nclass OtherCell(Cell): ...\n")
    (here / "text.txt").write_text("The cat sat on the mat.\n")
    told = succeed("train", "--help", "--plugin", "mine.py").out
    assert "mixer tanh-cell: model.mixers=tanh-cell" in told
    for name, near in (("tanh-cel", "tanh-cell"), ("OtherCel", "OtherCell")):
        error = refuse("train", "text.txt", "--plugin", "mine.py", f"model.mixers={name}")
        assert f"did you mean '{near}'?" in error


@pytest.mark.parametrize("command", [(), ("train",), ("inspect",)])
def test_help_names_the_options_of_every_command(command: tuple[str, ...]) -> None:
    told = succeed(*command, "--help").out
    assert all(option in told for option in ("--plugin", "--trust-plugin", "-q ", "--debug"))
