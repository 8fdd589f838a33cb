"""Names of the first run format: old configs are read, and old names are answered with the new ones."""

import hashlib
import json
import tomllib
from difflib import get_close_matches
from pathlib import Path

import pytest
import torch

from foveal.config import Config, ConfigError, parse_config, parse_overrides, preset_names, read_preset
from foveal.config.old_names import (
    PRESETS,
    TASKS,
    UPGRADE_NOTE,
    VIEWS,
    explain_old_setting,
    upgrade,
    upgrade_fields,
)
from foveal.data.core.standardize import Statistics
from foveal.data.text.length_limit import LengthLimit, load_length_limit
from foveal.inspection.registry import VIEWS as ALL_VIEWS
from foveal.store.run import open_run
from foveal.store.sealed import open_json, seal_json
from foveal.tasks.config import checked, from_tables, load_config
from foveal.tasks.registry import all_tasks, task_class
from tests.support.command_line import refuse, succeed

OLD_CONFIGS = Path(__file__).parent / "old_configs"
"""What runs of format 1 had in config.toml."""
SMALL_TEXT = (
    *("data.context_length=16", "data.batch_tokens=64", "model.width=8", "model.layers=1"),
    *("training.budget=20steps", "training.evaluate_every=3"),
)
SMALL_IMAGES = ("data.image.size=12", "data.image.batch_size=8", "model.width=8", "training.evaluate_every=3")
NEW_SETTINGS = {
    "language": ("lstm", SMALL_TEXT),
    "translate": (
        "translation",
        [
            *("model.width=8", "model.encoder.width=8", "data.batch_tokens=128", "model.cross.heads=2"),
            *(
                "model.attention.heads=2",
                "model.encoder.attention.heads=2",
                "training.evaluate_every=3",
            ),
            "training.budget=20steps",
        ],
    ),
    "glimpse": (
        "glimpses",
        [*SMALL_IMAGES, "task.glimpses=3", "task.glimpse_size=4", "training.budget=20steps"],
    ),
    "draw": ("draw", [*SMALL_IMAGES, "task.steps=3", "task.latent_size=4", "training.budget=20steps"]),
}
"""The preset and settings of each old config under the new names."""
NEW_CONFIGS = {
    name: load_config(preset, settings)
    for name, (preset, settings) in NEW_SETTINGS.items()
    if preset in preset_names()
}


def old_config(name: str) -> Config:
    return checked(parse_config(upgrade(tomllib.loads((OLD_CONFIGS / f"{name}.toml").read_text()))))


@pytest.mark.parametrize("name", NEW_CONFIGS)
def test_an_old_config_is_what_the_new_names_say(name: str) -> None:
    precision = {"training": {"precision": "float32"}}  # which a run has decided
    assert from_tables(old_config(name).model_dump(), precision) == from_tables(
        NEW_CONFIGS[name].model_dump(), precision
    )


def test_every_new_name_is_there_unless_its_task_is_gone() -> None:
    gone = {*TASKS.values()} - {*all_tasks()}
    assert not any(get_close_matches(name, all_tasks(), cutoff=0.9) for name in gone)  # a slip
    assert {*PRESETS.values()} - {*preset_names()} <= gone


def test_values_are_renamed_too() -> None:
    tables = {
        "task": {"name": "images", "smoothing": 0.1, "hardest": 0.5, "signal": "imitation"},
        "data": {"image": {"views": "moved"}, "augment": {"crop": "resized"}, "order": "windows"},
        "model": {
            "pooling": "summary",
            "mixers": "gru,attentive+cross",
            "recurrent": {"reset": "before"},
        },
    }
    assert upgrade(tables) == {
        "task": {"name": "image-classification", "label_smoothing": 0.1, "select_fraction": 0.5},
        "data": {"image": {"tta": "flip-shift"}, "augment": {"crop": "random-resized"}},
        "model": {
            "head_pooling": "encoder",
            "mixers": "gru,attention-rnn+cross",
            "gru": {"reset_after": False},
        },
    }


def test_stacks_that_one_task_reads_have_moved_to_the_task() -> None:
    model = {
        "question": {"mixers": "gru", "recurrent": {"reset": "before"}},
        "joint": {"width": 16, "summary": "class"},
    }
    stacks = {
        "question": {"mixers": "gru", "gru": {"reset_after": False}},
        "fusion": {"width": 16, "pooling": "cls"},
    }
    assert upgrade({"task": {"name": "answer"}, "model": model})["task"] == {"name": "vqa", **stacks}
    assert upgrade({"task": {"name": "images"}, "model": model})["task"] == {"name": "image-classification"}


def test_columns_of_other_tasks_are_dropped() -> None:
    """An old config had those of every task."""
    data = {"tags": "xpos", "question": "q", "history": "none", "longest": 9}
    tables = {
        name: upgrade({"task": {"name": name}, "data": data})["data"] for name in ("tag", "answer", "mask")
    }
    assert tables == {
        "tag": {"tags": "xpos", "max_length": 9},
        "answer": {"question": "q", "history": "none", "max_length": 9},
        "mask": {"max_length": 9},
    }


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("data.longest=4", "data.longest is now data.max_length"),
        ("data.order=streams", "data.order is now task.batching"),
        ("model.joint.width=8", "model.joint.width is now task.fusion.width"),
        ("model.question.layers=2", "model.question.layers is now task.question.layers"),
        ("model.fusion.norm=layer", "model.fusion.norm is now task.fusion.norm"),
        ("model.encoder.summary=last", "model.encoder.summary is now model.encoder.pooling"),
        ("task.name=tag", "task.name=tag is now task.name=tagging"),
        ("model.mixers=attentive", "model.mixers=attentive is now model.mixers=attention-rnn"),
        ("model.initialization=own", "model.initialization=own is now model.initialization=default"),
    ],
)
def test_an_old_setting_is_answered_with_the_new_one(setting: str, line: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"^{line}$"):
        parse_overrides([setting])
    key, _, value = setting.partition("=")
    *section, name = key.split(".")
    path = tmp_path / "mine.toml"
    path.write_text(f"[{'.'.join(section)}]\n{name} = {value if value.isdigit() else json.dumps(value)}\n")
    with pytest.raises(ConfigError, match=f"^{path}: {line}$"):
        read_preset(str(path))


def test_an_old_task_or_preset_is_answered_with_the_new_one() -> None:
    with pytest.raises(ConfigError, match="the task translate is now translation"):
        task_class("translate")
    with pytest.raises(ConfigError, match="the preset listen is now speech-recognition"):
        read_preset("listen")
    assert "the preset listen is now speech-recognition" in refuse("models", "describe", "listen")
    for name in all_tasks():
        assert not explain_old_setting("task.name", name)


def test_an_old_command_or_option_is_answered_with_the_new_one() -> None:
    assert "foveal transfer is now foveal compare-finetuning" in refuse(
        "transfer", "pictures", "--from", "run"
    )
    assert "--views is now --tta" in refuse("evaluate", "run", "--views", "ten")
    assert "--scales is now --tta-scales" in refuse("predict", "run", "pictures", "--scales=1,1.1")


def test_an_old_view_is_answered_with_the_new_one() -> None:
    views = {*ALL_VIEWS}
    assert not {*VIEWS} & views
    gone = {*TASKS.values()} - {*all_tasks()}
    assert {*VIEWS.values()} - views <= gone
    assert "the view neighbours is now neighbors" in refuse("inspect", "run", "neighbours", "--nearest", "3")


def test_old_files_of_processors_are_read(tmp_path: Path) -> None:
    (tmp_path / "channels.json").write_text('{"mean": [1.0], "deviation": [2.0]}')
    assert Statistics.load(tmp_path) == Statistics((1.0,), (2.0,))
    (tmp_path / "limit.json").write_text('{"limit": 3, "ratio": 0.5, "most": 9}')
    assert load_length_limit(tmp_path) == LengthLimit(3, 0.5, 9)
    assert upgrade_fields(LengthLimit, {"limit": 3}) == {"limit": 3}


@pytest.mark.slow
def test_an_old_run_opens_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old run ends with the same weights as a new run of the same settings, and a line says that it is
    old."""
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("".join(f"{'abc' * (1 + number % 7)} {number}.\n" for number in range(200)))
    small = (*SMALL_TEXT, "schedule.warmup_steps=50")  # as in the old config, which had no shorter one
    succeed("train", "text.txt", "--model", "lstm", *small, "--run", "run", "--device", "cpu")
    weights = Path("run/model.safetensors").read_bytes()
    age(Path("run"), (OLD_CONFIGS / "language.toml").read_bytes())
    told = succeed("resume", "run")
    assert told.err.count(UPGRADE_NOTE) == 1
    assert Path("run/model.safetensors").read_bytes() == weights
    assert UPGRADE_NOTE in succeed("evaluate", "run").err
    assert open_run(Path("run")).config.task.name == "language-model"


def age(run: Path, config: bytes) -> None:
    """Make of a run an untrained one of format 1, with an old config."""
    facts = open_json((run / "run.json").read_bytes(), "run.json")
    files = facts["files"] | {"config.toml": hashlib.sha256(config).hexdigest()}
    (run / "config.toml").write_bytes(config)
    (run / "run.json").write_bytes(
        seal_json(facts | {"format": 1, "files": files, "threads": torch.get_num_threads()})
    )
    for name in ("metrics.jsonl", "samples.jsonl"):
        (run / name).write_bytes(b"")
    for path in [*run.glob("*.png"), run / "plan.json", run / "model.safetensors"]:
        path.unlink()
    for checkpoint in (run / "checkpoints").iterdir():
        for path in checkpoint.iterdir():
            path.unlink()
        checkpoint.rmdir()
