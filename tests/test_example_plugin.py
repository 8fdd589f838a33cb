"""The example of a package of parts: its runs train, resume, evaluate, predict, generate and inspect."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import foveal
from benchmarks.kill import own_cache, story
from foveal.plugins.loading import load_plugin
from tests.support.command_line import TINY_MODEL, refuse, succeed
from tests.support.image_folders import images_by_class, write_files
from tests.support.killed_runs import check_killed_run
from tests.support.plugin_files import install
from tests.support.registries import restored_registries

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "examples/plugin/plugin_example"
PLUGIN = ("--plugin", str(PACKAGE))
PARTS = (
    *("model.encoder.kind=token-mlp", "model.encoder.token_mlp.width=16"),
    *("model.head.kind=cosine", "model.head.cosine.sharpness=5"),
    *("task.metrics=mistake-cost", "task.mistake_cost.missed=sad"),
    *("training.callbacks=heartbeat", "training.heartbeat.file=beat.txt"),
)
pytestmark = pytest.mark.usefixtures("own_registries")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run `run`, trained on the data set of the example with its encoder, head and task."""
    folder = tmp_path_factory.mktemp("example")
    with pytest.MonkeyPatch.context() as patch, restored_registries():
        patch.setenv("FOVEAL_CACHE", str(own_cache(folder / "cache")))
        patch.chdir(folder)
        result = succeed(
            "train", "short-reviews", *PLUGIN, *PARTS, "--budget", "30steps", "--run", "run", "--json"
        )
        (folder / "result.json").write_text(result.out)
    return folder


@pytest.fixture
def here(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOVEAL_CACHE", str(own_cache(tmp_path / "cache")))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained / "run", "run")
    return tmp_path


def test_it_registers_one_part_of_each_kind() -> None:
    assert load_plugin(PACKAGE).parts == {
        "mixer": ["average"],
        "encoder": ["token-mlp"],
        "head": ["cosine"],
        "model": ["small-net"],
        "task": ["moods"],
        "data set": ["short-reviews"],
        "metric": ["mistake-cost"],
        "callback": ["heartbeat"],
        "view": ["label-shares"],
    }


def test_a_run_of_its_parts(trained: Path) -> None:
    result = json.loads((trained / "result.json").read_text())
    assert result["accuracy"] > 0.7
    assert "mistake_cost" in result
    assert (trained / "run/beat.txt").read_text() == "step 30: ended (budget)\n"
    toml = (trained / "run/config.toml").read_text()
    for line in (
        'name = "moods"',
        "[model.head.cosine]\nsharpness = 5.0",
        '[training.heartbeat]\nfile = "beat.txt"',
    ):
        assert line in toml
    stored = {path.name for path in (trained / "run/plugins/plugin_example").iterdir()}
    assert stored == {path.name for path in PACKAGE.glob("*.py")}


def test_the_ordinary_commands_open_it(here: Path) -> None:
    assert "was made with the plugin plugin_example" in refuse("evaluate", "run")
    evaluated = json.loads(succeed("evaluate", "run", "--json", "--trust-plugin").out)
    assert evaluated["split"] == "test"
    answers = succeed("predict", "run", "--text", "a dull and slow play", *PLUGIN).out
    assert answers.splitlines()[0].startswith("text,answer,probability")
    assert json.loads(succeed("inspect", "run", "confusion", "--json", *PLUGIN).out)
    shown = json.loads(succeed("inspect", "run", "label-shares", "--json", "--control", *PLUGIN).out)
    assert [panel["kind"] for panel in shown["panels"]] == ["bars", "bars"]
    run = foveal.load("run", trust_plugin=True)
    assert len(run.predict(["a bright and great song"])) == 1


def test_installed_it_needs_no_option(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry point stands for the installed package."""
    monkeypatch.syspath_prepend(PACKAGE.parent)
    install(monkeypatch, "plugin_example")
    assert json.loads(succeed("evaluate", "run", "--json").out)["split"] == "test"
    assert "short-reviews" in succeed("data", "list").out
    assert foveal.list_models("small*") == ["small-net"]


@pytest.mark.slow
def test_killed_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kept sources alone end the training bit for bit as it would have ended."""
    resume = ("resume", "run", "--trust-plugin")
    check_killed_run(tmp_path, monkeypatch, list, "short-reviews", (*PLUGIN, *PARTS), resume)


def test_its_mixer_generates(here: Path) -> None:
    Path("text.txt").write_text(story())
    settings = ("model.mixers=average,lstm", "model.layers=2", "model.average.half_life=8")
    steps = ("--budget", "2steps", "--run", "text")
    succeed("train", "text.txt", *PLUGIN, *TINY_MODEL[:1], *TINY_MODEL[2:], *settings, *steps)
    assert (
        "half_life = 8.0  # First half-life of the average, in steps." in Path("text/config.toml").read_text()
    )
    assert len(succeed("generate", "text", "--tokens", 20, "--trust-plugin").out) > 20


def test_its_network_is_a_model(here: Path) -> None:
    write_files(Path("photos"), images_by_class(40))
    settings = ("model.encoder.small_net.width=8", "data.image.size=16", "--budget", "2steps")
    succeed("train", "photos", *PLUGIN, "--model", "small-net", *settings, "--run", "photo-run")
    config = Path("photo-run/config.toml").read_text()
    assert 'network = "small-net"' in config
    assert "[model.encoder.small_net]\nwidth = 8" in config
    assert succeed("predict", "photo-run", "photos/a", "--trust-plugin").out


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ("model.encoder.kind=token-mpl", "unknown encoder 'token-mpl'; did you mean 'token-mlp'?"),
        ("model.head.kind=cosin", "unknown head 'cosin'; did you mean 'cosine'?"),
        ("task.metrics=mistake-cots", "unknown metric 'mistake-cots'; did you mean 'mistake-cost'?"),
        (
            "task.metrics=bleu",
            "task.metrics=bleu compares texts, and task.name=moods predicts labels: set it to",
        ),
        ("training.callbacks=heartbeet", "unknown callback 'heartbeet'; did you mean 'heartbeat'?"),
        (
            "model.encoder.kind=token-mlp model.encoder.token_mlp.with=8",
            "mean 'model.encoder.token_mlp.width'?",
        ),
        ("model.head.kind=cosine model.head_pooling=max", "is not read, since model.head.kind=cosine; set"),
        ("training.heartbeat.file=a", "training.heartbeat is not read by training.callbacks="),
        ("training.hartbeat.file=a", "unknown key 'training.hartbeat'; did you mean 'training.heartbeat'?"),
        (
            "model.encoder.kind=token-mlp model.encoder.layers=2",
            "is not read, since model.encoder.kind=token-mlp",
        ),
    ],
)
def test_errors_have_the_nearest_name(here: Path, settings: str, line: str) -> None:
    assert line in refuse("train", "short-reviews", *PLUGIN, *settings.split())


@pytest.mark.parametrize(
    ("data", "settings", "line"),
    [
        ("text.txt", "model.encoder.kind=token-mlp", "task.name=language-model needs no encoder"),
        ("text.txt", "model.head.kind=cosine", "model.head.kind is not read, since task.name=language-model"),
        ("text.txt", "task.metrics=wer", "task.metrics"),
        ("text.txt", "--model small-net --task moods", "--model small-net labels images; for moods"),
        ("text.txt", "--task moods --model captioning", "moods needs an encoder of what it reads"),
    ],
)
def test_parts_that_do_not_fit_are_refused(here: Path, data: str, settings: str, line: str) -> None:
    Path("text.txt").write_text(story())
    assert line in refuse("train", data, *PLUGIN, *settings.split())


@pytest.mark.slow
def test_a_real_installation(tmp_path: Path) -> None:
    """The package is installed by pip, beside a Foveal that knows nothing of it."""
    source = shutil.copytree(ROOT / "examples/plugin", tmp_path / "source")
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "-q"]
    subprocess.run([*pip, "--target", str(site), str(source)], check=True)
    command = [sys.executable, "-m", "foveal", "data", "describe", "short-reviews"]
    environment = {"PYTHONPATH": f"{site}:{ROOT}", "PATH": "/usr/bin:/bin"}
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "moods" in shown.stdout
