"""The documentation says what is there: settings and defaults, links, commands, a page for each mixer."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from foveal.cli import APP, COMMANDS, EXAMPLES
from foveal.config import Config, ConfigError, DataConfig, ModelConfig, StackConfig, preset_names
from foveal.core.tap import TAP_SITES
from foveal.layers.mixers.registry import mixer_specs
from foveal.models.network_registry import NETWORKS
from foveal.plugins.loading import load_plugin
from foveal.plugins.options import take_plugin_options
from foveal.plugins.references import resolve_references
from foveal.tasks.config import load_config
from foveal.tasks.registry import all_tasks, default_task

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def settings(part: BaseModel, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Every key of a config with its default, as TOML without quotes; those of the stack of an encoder are
    the model's."""
    for name in type(part).model_fields:
        value = getattr(part, name)
        if path[1:] == ("encoder",) and name in StackConfig.model_fields:
            assert value == getattr(ModelConfig(), name)
            continue
        if isinstance(value, BaseModel):
            yield from settings(value, (*path, name))
        else:
            yield ".".join((*path, name)), str(value).lower() if isinstance(value, bool) else str(value)


def rows(page: Path) -> list[tuple[str, str]]:
    """Return the keys and defaults in the tables of a page."""
    return re.findall(r"^\| `([\w.]+)` \| `(.*?)` \| .+ \|$", page.read_text(encoding="utf-8"), re.MULTILINE)


def mixer_settings() -> dict[str, BaseModel]:
    """Return the default settings of every mixer, by the key of its section."""
    return {f"model.{spec.section}.": spec.Settings() for spec in mixer_specs().values()}


def task_data_settings() -> dict[str, str]:
    """Return the defaults of the settings `data.*` that tasks declare, by key."""
    return {
        f"data.{name}": str(field.default)
        for task in all_tasks().values()
        for name, field in task.DataSettings.model_fields.items()
        if name not in DataConfig.model_fields
    }


def test_every_setting_with_its_default() -> None:
    """The settings of tasks and mixers may stand on other pages."""
    elsewhere = ("task.", *task_data_settings(), *mixer_settings())
    config = Config()
    expected = [row for name in type(config).model_fields for row in settings(getattr(config, name), (name,))]
    page = [row for row in rows(ROOT / "docs/config.md") if not row[0].startswith(elsewhere)]
    assert page == [row for row in expected if not row[0].startswith(elsewhere)]


def test_every_setting_of_a_mixer_with_its_default() -> None:
    """On the page of settings, or on a page of the mixer."""
    sections = mixer_settings()
    documented = {row for page in PAGES for row in rows(page) if row[0].startswith(tuple(sections))}
    assert documented == {
        row for key, section in sections.items() for row in settings(section, tuple(key.split(".")[:-1]))
    }


def test_every_setting_of_a_task_with_its_default() -> None:
    """On the page of settings, or on a page of the task."""
    own = task_data_settings()
    documented = {row for page in PAGES for row in rows(page) if row[0].startswith("task.") or row[0] in own}
    expected = {("task.name", default_task().name), *own.items()}
    for task in all_tasks().values():
        defaults = {
            name: field.default for name, field in task.Settings.model_fields.items() if name != "name"
        }
        expected |= {
            (f"task.{name}", str(value))
            for name, value in defaults.items()
            if not isinstance(value, StackConfig)  # whose settings are the model's
        }
    assert documented == expected


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    for link in links:
        if link.startswith(("https://", "http://")):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def commands(page: Path) -> list[str]:
    """Every `foveal ...` of a page: the lines of its code, and code inside its sentences."""
    text = page.read_text(encoding="utf-8")
    lines = re.findall(r"^(?: *|.*&& )(?:next +)?(foveal (?:'[^'\n]*'|[^|>\n'])+)", text, re.MULTILINE)
    return lines + [code for code in re.findall(r"`(foveal [^`\n]+)`", text) if code.count(" ") > 1]


@pytest.mark.parametrize("page", [*PAGES, "help"], ids=lambda page: str(page).removeprefix(f"{ROOT}/"))
def test_commands_are_understood(
    page: Path | str, monkeypatch: pytest.MonkeyPatch, own_registries: None
) -> None:
    monkeypatch.chdir(ROOT / "examples")  # the plugins of the pages are there
    examples = [command for some in EXAMPLES.values() for command in some]
    for command in commands(page) if isinstance(page, Path) else examples:
        options = take_plugin_options(shlex.split(command, comments=True)[1:])
        for plugin in options.plugins:
            load_plugin(plugin)
        _, bound, _ = APP.parse_args(options.arguments, exit_on_error=False, print_error=False)
        given = {**bound.arguments}
        given |= vars(given["options"]) if given.get("options") else {}  # those of a training
        preset = given.get("model")
        assert preset is None or preset in [*preset_names(), *NETWORKS] or preset.endswith(".toml"), command
        overrides = [*resolve_references(given.get("overrides", ()))]
        overrides += [f"task.name={given['task']}"] if given.get("task") else []
        named = preset or given.get("preset")  # of a plan
        presets = [named] if named in preset_names() else default_presets()
        assert any(reads(preset, overrides) for preset in presets), command


def default_presets() -> list[str]:
    """The presets of all tasks: which one is trained would be seen in the data, which are not here."""
    return [task.preset for task in all_tasks().values()]


def reads(preset: str, overrides: list[str]) -> bool:
    """Whether a preset reads all settings of a command."""
    try:
        load_config(preset, overrides)
    except ConfigError:
        return False
    return True


def test_commands_are_found() -> None:
    """The search itself: a page without commands would pass."""
    found = [command for page in PAGES for command in commands(page)]
    assert "foveal generate first" in found
    assert {command.split()[1] for command in found} >= COMMANDS.keys()


def test_every_tap_is_told() -> None:
    page = (ROOT / "docs/capture.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE) == [
        (name, site.meaning) for name, site in TAP_SITES.items()
    ]


def test_every_mixer_and_preset_has_its_place() -> None:
    assert sorted(path.stem for path in (ROOT / "docs/mixers").glob("*.md")) == list(mixer_specs())
    text = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    for preset in preset_names():
        assert f"{preset}.toml" in text or f"--model {preset}" in text, preset
