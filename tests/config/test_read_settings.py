"""The config says what is read: what nothing reads is refused, dropped and not written."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from foveal.config import Config, ConfigError, preset_names, read_preset
from foveal.config.old_names import flatten
from foveal.config.sections_by_path import meanings
from foveal.config.values import StrictModel
from foveal.layers.mixers.registry import mixer_specs
from foveal.models.network_registry import NETWORKS
from foveal.tasks.config import from_tables, load_config
from foveal.tasks.configure import network_config
from foveal.tasks.read_settings import config_to_toml, read_settings, unread_settings
from foveal.tasks.registry import all_tasks

MOST_SETTINGS = 70
"""Of a character LSTM."""
MEANING_WIDTH = 100


def written(config: Config) -> list[str]:
    """The keys of the settings in a config's file."""
    return [key for key, _ in flatten(tomllib.loads(config_to_toml(config)))]


def test_a_character_lstm_has_few_settings() -> None:
    config = load_config("lstm")
    assert 40 < len(written(config)) <= MOST_SETTINGS
    assert {*written(config)} == read_settings(config)
    sections = {key.rpartition(".")[0] for key in written(config)}
    assert sections == {
        *("data", "model", "model.lstm", "model.positions", "model.encoder"),
        *("task", "optimizer", "schedule", "training"),
    }


@pytest.mark.parametrize("preset", preset_names())
def test_a_printed_file_is_taken_back(preset: str, tmp_path: Path) -> None:
    config = load_config(preset)
    path = tmp_path / "printed.toml"
    path.write_text(config_to_toml(config))
    assert load_config(str(path)) == config
    assert all("  # " in line for line in config_to_toml(config).splitlines() if " = " in line)


@pytest.mark.parametrize("preset", preset_names())
def test_presets_hold_nothing_that_is_not_read(preset: str) -> None:
    own = {key for key, _ in flatten(read_preset(preset))}
    assert own - read_settings(load_config(preset)) == set()


@pytest.mark.parametrize("network", [name for name in NETWORKS if name not in preset_names()])
def test_settings_of_networks_are_read(network: str) -> None:
    assert read_settings(network_config(network)) >= {"model.encoder.network", "data.image.size"}


def test_unread_settings_have_their_defaults() -> None:
    config = load_config("moe", ["model.feedforward=mlp", "optimizer.name=sgd"])
    assert config.model.experts == Config().model.experts
    assert config.optimizer.momentum == Config().optimizer.momentum
    translation = load_config("translation", ["task.name=language-model", "model.encoder.kind=none"])
    assert translation.model.encoder == Config().model.encoder


@pytest.mark.parametrize(
    ("preset", "setting", "line"),
    [
        (
            "attention",
            "model.experts.top_k=1",
            "model.experts.top_k is not read, since model.feedforward=mlp; set model.feedforward=moe",
        ),
        (
            "lstm",
            "model.activation=relu",
            "model.activation is not read, since model.feedforward=none; set model.feedforward=mlp or moe",
        ),
        (
            "lstm",
            "model.encoder.width=8",
            "model.encoder.width is not read, since model.encoder.kind=none; did you mean 'model.width'?",
        ),
        (
            "masked-lm",
            "model.layers=3",
            "model.layers is not read, since task.name=masked-lm; did you mean 'model.encoder.layers'?",
        ),
        (
            "image-classification",
            "data.tokenizer=bpe",
            "data.tokenizer is not read, since task.name=image-classification; leave it out",
        ),
        ("lstm", "optimizer.momentum=0.5", "optimizer.momentum is not read, since optimizer.name=adamw"),
        ("lstm", "data.question=q", "data.question is not read, since task.name=language-model; "),
        ("vqa", "data.tags=xpos", "data.tags is not read, since task.name=vqa; "),
        ("vqa", "data.choices=c", "data.choices is not read, since task.name=vqa; "),
        ("lstm", "data.vocab_size=300", "data.vocab_size is not read, since data.tokenizer=character"),
        ("translation", "data.hold_out=variants", "set data.group_pattern"),
        ("vqa", "task.fusion.embedding_width=8", "is not read, since task.name=vqa"),
        ("vqa", "task.question.s5.blocks=2", "task.question.s5 is not read by task.question.mixers=gru"),
    ],
)
def test_a_setting_that_nothing_reads_is_refused(
    preset: str, setting: str, line: str, tmp_path: Path
) -> None:
    """On the command line, and in a user's own file."""
    with pytest.raises(ConfigError) as refused:
        load_config(preset, [setting])
    assert line in str(refused.value)
    key, _, value = setting.partition("=")
    settings = dict(flatten(tomllib.loads(config_to_toml(load_config(preset)))))
    settings[key] = float(value) if value[0].isdigit() else value
    path = tmp_path / "mine.toml"
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()))
    with pytest.raises(ConfigError) as refused:
        load_config(str(path))
    assert str(refused.value).startswith(f"{path}: {key.partition('.s5')[0]}")
    assert line in str(refused.value)


REFUSED = [(task.preset, key) for task in all_tasks().values() for key in task.refused_settings]


@pytest.mark.parametrize(("preset", "key"), REFUSED)
def test_a_task_refuses_a_setting_of_other_tasks_with_any_value(preset: str, key: str) -> None:
    """The value that other tasks have by default too."""
    for value in ("0", "0.1"):
        with pytest.raises(ConfigError, match=f"^task.{key}: .*; leave it out$"):
            load_config(preset, [f"task.{key}={value}"])


def test_a_users_file_goes_with_the_command_line(tmp_path: Path) -> None:
    """What the file sets is read in the file; with another choice on the command line it is dropped."""
    path = tmp_path / "mine.toml"
    path.write_text('[model]\nfeedforward = "moe"\nexperts.count = 4\n')
    assert load_config(str(path)).model.experts.count == 4
    assert load_config(str(path), ["model.feedforward=mlp"]) == load_config(
        str(path), ["model.feedforward=mlp", "model.expansion=4"]
    )


def test_a_setting_is_read_with_the_choice_that_is_named() -> None:
    for preset, key in (("attention", "model.experts.count"), ("lstm", "optimizer.momentum")):
        reason = unread_settings(load_config(preset))[key]
        assert reason.values_to_set
        for value in reason.values_to_set:
            assert key in read_settings(load_config(preset, [f"{reason.key}={value}"]))


def section_classes(section: type[StrictModel]) -> Iterator[type[StrictModel]]:
    """A section and those inside it."""
    yield section
    for field in section.model_fields.values():
        if isinstance(field.annotation, type) and issubclass(field.annotation, StrictModel):
            yield from section_classes(field.annotation)


def test_every_setting_has_a_meaning_of_one_line() -> None:
    roots: list[type[StrictModel]] = [Config, *(spec.Settings for spec in mixer_specs().values())]
    roots += [section for task in all_tasks().values() for section in (task.Settings, task.DataSettings)]
    for section in (inner for root in roots for inner in section_classes(root) if inner is not Config):
        for name, field in section.model_fields.items():
            if isinstance(field.annotation, type) and issubclass(field.annotation, StrictModel):
                continue
            meaning = meanings(section).get(name, "")
            assert meaning.endswith("."), f"{section.__name__}.{name}: {meaning}"
            assert 10 < len(meaning) <= MEANING_WIDTH, f"{section.__name__}.{name}: {meaning}"


def test_a_config_made_of_its_own_tables_is_the_same() -> None:
    config = load_config("vqa")
    assert from_tables(config.model_dump()) == config
