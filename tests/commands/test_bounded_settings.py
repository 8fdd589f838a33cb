"""Settings of any length or depth, on the command line or in a file, are refused in one short line."""

from pathlib import Path

import pytest

from foveal.ui.error_line import MAX_LENGTH
from tests.support.command_line import refuse, run_command

LONG_KEY = "a" + ".a" * 20_000
VALUES = {
    "long key": f"{{{LONG_KEY} = 1}}",
    "deep tables": "{a = " * 5_000 + "1" + "}" * 5_000,
    "deep lists": "[" * 20_000 + "]" * 20_000,
    "unclosed": "[" * 20_000,
    "many digits": "9" * 20_000,
    "long text": "x" * 100_000,
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("key", ["model.width", "model.mixers", "data.text", "model"])
def test_a_value_on_the_command_line(key: str, value: str, here: Path) -> None:
    Path("a.txt").write_text("It was.\n" * 9)
    result = run_command("train", "a.txt", f"{key}={value}")
    assert result.code == 2
    assert len(result.last) < MAX_LENGTH + 100


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_value_in_a_file(value: str, here: Path) -> None:
    Path("a.txt").write_text("It was.\n" * 9)
    Path("a.toml").write_text(f"[model]\nwidth = {value}\n")
    message = refuse("train", "a.txt", "--model", "a.toml")
    assert message.startswith("foveal: a.toml: ")
    assert len(message) < MAX_LENGTH + 100


@pytest.mark.parametrize("setting", [f"{LONG_KEY}=1", LONG_KEY, "x" * 100_000, f"{'x' * 100_000}=1"])
def test_a_key_on_the_command_line(setting: str, here: Path) -> None:
    Path("a.txt").write_text("It was.\n" * 9)
    assert len(refuse("train", "a.txt", setting)) < MAX_LENGTH + 100


@pytest.mark.parametrize("table", [f"{LONG_KEY} = 1", f"[{LONG_KEY}]", f"[model]\n{LONG_KEY} = 1"])
def test_a_key_in_a_file(table: str, here: Path) -> None:
    Path("a.txt").write_text("It was.\n" * 9)
    Path("a.toml").write_text(f"{table}\n")
    assert "too many for the key of a setting" in refuse("train", "a.txt", "--model", "a.toml")
