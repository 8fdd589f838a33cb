"""Presets, files and `key.sub=value` on the command line to a config."""

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from foveal.config.old_names import PRESETS as OLD_PRESETS
from foveal.config.old_names import explain_old_setting, flatten
from foveal.config.sections import Config
from foveal.config.sections_by_path import setting_text

Section = TypeVar("Section", bound=BaseModel)
PRESETS_FOLDER = Path(__file__).parent.parent / "presets"
MAX_TOML_BYTES, MAX_KEY_DOTS = 1 << 18, 200
"""The largest file of settings, and the most dots in one of its lines or in a setting on the command line."""
MAX_KNOWN, FIRST_KNOWN = 24, 8
"""The names that a message lists at most, and those that it lists of more."""
MODELS_COMMAND = "foveal models"
"""The command that lists presets and networks."""
SETTINGS_COMMAND = "foveal train DATA --print-config"
"""The command that lists the settings of a training."""
OTHER_WORDS = {
    "lr": "optimizer.lr=VALUE",
    "learning_rate": "optimizer.lr=VALUE",
    "rate": "optimizer.lr=VALUE",
    "weight_decay": "optimizer.weight_decay=VALUE",
    "batch_size": "data.image.batch_size=VALUE (images) or data.batch_tokens=VALUE (all others)",
    "batch": "data.image.batch_size=VALUE (images) or data.batch_tokens=VALUE (all others)",
    "epochs": "--budget 5epochs",
    "epoch": "--budget 5epochs",
    "num_epochs": "--budget 5epochs",
    "steps": "--budget 2000steps",
    "max_steps": "--budget 2000steps",
    "time": "--budget 10m",
    "gpu": "--device cuda",
    "cuda": "--device cuda",
    "gpus": "--device cuda",
    "device": "--device cpu or --device cuda",
    "cpu": "--device cpu",
    "seed": "training.seed=VALUE",
    "layers": "model.layers=VALUE",
    "hidden_size": "model.width=VALUE",
    "hidden": "model.width=VALUE",
    "width": "model.width=VALUE",
    "size": "data.image.size=VALUE or model.width=VALUE",
    "image_size": "data.image.size=VALUE",
    "dropout": "model.dropout=VALUE",
    "context": "data.context_length=VALUE",
    "seq_len": "data.context_length=VALUE",
    "output": "--run FOLDER",
    "output_dir": "--run FOLDER",
    "out_dir": "--run FOLDER",
    "pretrained": "--from RUN",
    "resume": "foveal resume RUN",
    "val": "--valid DATA",
    "validation": "--valid DATA",
    "preset": "--model NAME",
    "arch": "--model NAME",
    "network": "--model NAME or model.encoder.network=NAME",
    "optimizer": "optimizer.name=NAME",
    "label": "data.label=COLUMN",
    "text": "data.text=COLUMN",
}
"""Settings and options by the names that other programs give them."""
EXPECTED_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "model": "settings below it, as key.sub=value",
}
"""In plain words, by how the kinds of pydantic's errors begin."""


class ConfigError(ValueError):
    """A configuration error that the user can fix, in a single line."""


def preset_names() -> list[str]:
    return sorted(path.stem for path in PRESETS_FOLDER.glob("*.toml"))


def read_preset(preset: str) -> dict[str, Any]:
    """Return the tables of a preset, or of the TOML file at a path.

    Raises: ConfigError: there is no such preset or file, or it has an old name in it.
    """
    path = Path(preset)
    if preset in preset_names():
        path = PRESETS_FOLDER / f"{preset}.toml"
    elif preset in OLD_PRESETS:
        raise ConfigError(f"the preset {preset} is now {OLD_PRESETS[preset]}")
    elif path.suffix != ".toml":
        raise ConfigError(f"unknown preset '{preset}'{suggest(preset, preset_names(), where=MODELS_COMMAND)}")
    try:
        with path.open("rb") as file:
            content = file.read(MAX_TOML_BYTES + 1)
        tables = parse_toml(content)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    refuse_old_names(tables, f"{path}: ")
    return tables


def preset_description(preset: str) -> str:
    """Return what a preset is: the comment at the top of its file."""
    lines = (PRESETS_FOLDER / f"{preset}.toml").read_text().splitlines()
    return " ".join(line.removeprefix("#").strip() for line in takewhile(lambda line: line[:1] == "#", lines))


def parse_toml(content: bytes) -> dict[str, Any]:
    """Return the tables of a TOML file. Its size and the length of its keys are checked first, because the
    time of the parser grows with the square of the parts of a key.

    Raises: ConfigError: the content is not TOML, or too large for settings.
    """
    if len(content) > MAX_TOML_BYTES:
        raise ConfigError(f"over {MAX_TOML_BYTES:,} bytes, too large for settings")
    for number, line in enumerate(content.splitlines(), 1):
        if line.count(b".") > MAX_KEY_DOTS:
            raise ConfigError(f"line {number}: over {MAX_KEY_DOTS} dots, too many for the key of a setting")
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:  # numbers of too many digits are plain ValueErrors
        raise ConfigError(f"not TOML: {error}") from None


def refuse_old_names(tables: Mapping[str, Any], place: str = "") -> None:
    """Check that no setting or value has a name of an older version.

    Raises: ConfigError: a name is old; the error gives the new name.
    """
    for key, value in flatten(tables):
        if explanation := explain_old_setting(key, value):
            raise ConfigError(f"{place}{explanation}")


def merge_tables(*tables: Mapping[str, Any]) -> dict[str, Any]:
    """Merge nested tables; later ones win."""
    merged: dict[str, Any] = {}
    for table in tables:
        _merge(merged, table)
    return merged


def parse_config(tables: Mapping[str, Any]) -> Config:
    """Check nested tables but for the section `task` and a task's own settings `data.*`, which the task
    checks.

    Raises: ConfigError: a setting is unknown or does not fit.
    """
    try:
        return Config.model_validate(tables)
    except ValidationError as error:
        raise ConfigError(explain_validation_error(error, Config)) from None


def parse_overrides(overrides: Iterable[str]) -> dict[str, Any]:
    """Return overrides such as `["model.width=64"]` as nested tables. Values are TOML, or else
    plain strings."""
    tables: dict[str, Any] = {}
    for override in overrides:
        key, equals, text = override.partition("=")
        if key.count(".") > MAX_KEY_DOTS:
            raise ConfigError(f"'{key[:40]}...': over {MAX_KEY_DOTS} dots, too many for the key of a setting")
        advice = other_word_advice(key) or ("" if equals else "; a model is named with --model NAME")
        if not equals or not key or not all(key.split(".")):
            raise ConfigError(f"'{override}': expected key.sub=value, such as model.width=256{advice}")
        try:
            value = parse_toml(f"value = {text}".encode("utf-8", "surrogateescape"))["value"]
        except ConfigError:
            value = text
        for part in reversed(key.split(".")):
            value = {part: value}
        _merge(tables, value)
    refuse_old_names(tables)
    return tables


def suggest(word: str, known: Iterable[str], prefix: str = "", where: str = "") -> str:
    """Return a hint for a misspelled word: the nearest known word, else the known words, each with `prefix`
    before it. `where` says what lists them all, if there are more than a line takes."""
    names = sorted(known)
    lower_case = {name.lower(): name for name in reversed(names)}
    close = difflib.get_close_matches(word.lower(), lower_case, n=1)
    if close:
        return f"; did you mean '{prefix}{lower_case[close[0]]}'?"
    shown = names if len(names) <= MAX_KNOWN else names[:FIRST_KNOWN]
    rest = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
    all_listed = f"; {where} lists all" if rest and where else ""
    return f"; known: {', '.join(prefix + name for name in shown)}{rest}{all_listed}"


def other_word_advice(key: str) -> str:
    """Return a hint for a setting or option by the name of other programs; empty if the name is none."""
    words = OTHER_WORDS.get(key.rpartition(".")[2].lower().replace("-", "_"), "")
    return f"; did you mean {words}?" if words else ""


def _merge(into: dict[str, Any], table: Mapping[str, Any]) -> None:
    for key, value in table.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = dict(value) if isinstance(value, Mapping) else value


def validate_section(section: type[Section], table: Mapping[str, Any], path: str) -> Section:
    """Return the settings in a table of a config, such as the one at the path `model.mamba`.

    Raises: ConfigError: a key is unknown, or its value is not allowed.
    """
    try:
        return section.model_validate(table)
    except ValidationError as error:
        raise ConfigError(explain_validation_error(error, section, f"{path}.")) from None


def explain_validation_error(error: ValidationError, root: type[BaseModel], prefix: str = "") -> str:
    """Return the first problem in one line, with the nearest known key or the allowed values.

    `root` is what was validated, `prefix` the dotted key of its table, such as `task.`.
    """
    problem = error.errors()[0]
    path = [str(part) for part in problem["loc"]]
    key = prefix + ".".join(path)
    section: Any = root
    for part in path[:-1]:
        section = getattr(section.model_fields.get(part), "annotation", None)
        if section is None:
            break
    fields = getattr(section, "model_fields", {})
    unknown = problem["type"] == "dict_type" and fields and path[-1] not in fields
    if (problem["type"] == "extra_forbidden" or unknown) and (advice := other_word_advice(key)):
        return f"unknown key '{key}'{advice}"
    if problem["type"] == "extra_forbidden" or unknown:
        before = prefix + "".join(f"{part}." for part in path[:-1])
        return f"unknown key '{key}'{suggest(path[-1], fields, before, SETTINGS_COMMAND)}"
    written = f"{key}={setting_text(problem['input'])}"
    if expected := EXPECTED_TYPES.get(problem["type"].partition("_")[0]):
        return f"{written}: expected {expected}"
    message = str(problem["msg"]).removeprefix("Value error, ")
    if problem["type"] == "string_type" and isinstance(problem["input"], bool):
        # TOML's word for a truth value, on the command line of a shell that takes away quotes.
        return f"{written}: expected text; in quotes it is text: '{key}=\"{setting_text(problem['input'])}\"'"
    return f"{written}: {message[0].lower()}{message[1:]}" if path else message
