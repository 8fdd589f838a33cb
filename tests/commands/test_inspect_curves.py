"""`foveal inspect RUN curves`."""

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

import foveal
from foveal.core.errors import UserError
from tests.support.command_line import refuse, succeed


def test_of_a_run_and_of_another_over_it(run: Path) -> None:
    printed = succeed("inspect", run, "curves").out
    assert "diagnosis" in printed
    shutil.copytree(run, "other")
    result = json.loads(
        succeed("inspect", run, "curves", "--with", "other", "--by", "tokens", "--out", "x.png", "--json").out
    )
    assert result["step"] == result["others"][0]["step"]
    assert result["findings"] == []
    with Image.open("x.png") as picture:
        assert min(picture.size) > 500
    opened = foveal.load(run)
    assert opened.curves().to_dict() == opened.inspect("curves").to_dict()


def test_what_can_not_be_drawn(run: Path) -> None:
    assert "no-run: no such run" in refuse("inspect", run, "curves", "--with", "no-run")
    with pytest.raises(UserError, match="by hours: expected step, seconds, tokens or epoch"):
        foveal.load(run).inspect("curves", by="hours")
    Path(run, "metrics.jsonl").write_text("")
    assert "it has no log of a training" in refuse("inspect", run, "curves")
