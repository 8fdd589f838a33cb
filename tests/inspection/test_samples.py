"""The view `samples`: what a run wrote in its training."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from foveal.core.errors import UserError
from foveal.core.progress import no_progress
from foveal.inspection.panels import Table
from foveal.inspection.samples import SamplesOptions, SamplesView


def run_with(path: Path, content: str) -> Any:
    path.write_text(content, encoding="utf-8")
    return SimpleNamespace(run=SimpleNamespace(path=path.parent, samples=path))


def rows(run: Any, last: int = 50) -> tuple[tuple[str, ...], ...]:
    (panel,) = SamplesView().compute(run, SamplesOptions(last), lambda line: None, no_progress).panels
    assert isinstance(panel, Table)
    return panel.rows


@pytest.mark.usefixtures("types_unchecked")
def test_the_newest_comes_first(tmp_path: Path) -> None:
    """A line that is being written is not yet there. Line breaks and any script stay."""
    lines = [json.dumps({"step": step, "text": text}) for step, text in ((0, "xq\n"), (1000, "שלום 🙂"))]
    run = run_with(tmp_path / "samples.jsonl", "\n".join([*lines, '{"step": 2000, "te']))
    assert rows(run) == (("1,000", "שלום 🙂"), ("0", "xq\n"))
    assert rows(run, 1) == (("1,000", "שלום 🙂"),)
    title = SamplesView().compute(run, SamplesOptions(1), lambda line: None, no_progress).title
    assert title.endswith("2 samples"), "all that there are, not those shown"
    assert SamplesView().fits(run) == ""


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize("line", ["[1}", '{"step": "x", "text": ""}', '{"text": "a"}'])
def test_a_damaged_log(tmp_path: Path, line: str) -> None:
    with pytest.raises(UserError, match="damaged, so the run has no samples"):
        rows(run_with(tmp_path / "samples.jsonl", line))


@pytest.mark.usefixtures("types_unchecked")
def test_a_run_without_samples(tmp_path: Path) -> None:
    assert "no samples" in SamplesView().fits(run_with(tmp_path / "samples.jsonl", ""))
