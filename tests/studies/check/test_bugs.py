"""`foveal check` finds each of the bugs that were written as patches before it, in a copy of the package."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import foveal
from tests.support.checked_run import train_run
from tests.support.patches import patched_copy, patched_files

BUGS = Path(__file__).parent / "bugs"
STACK = ("model.width=16", "model.layers=2")
ENCODER = ("model.encoder.width=16", "model.encoder.embedding_width=16", "model.encoder.layers=1")
ATTENTION = (*ENCODER, "model.encoder.mixers=attention", "model.encoder.bidirectional=false")


class Finding(NamedTuple):
    """What is checked, and a law that a bug breaks, of the part that has the bug or of the model."""

    target: tuple[str, ...]
    law: str
    part: str = "model"


FINDINGS = {
    "01-mask-off-by-one": Finding(("attention", *STACK), "sees no future"),
    "02-state-kept-in-module": Finding(("conv", *STACK), "keeps nothing between calls", "CausalConv1d"),
    "03-convolution-looks-ahead": Finding(("conv", *STACK), "sees no future"),
    "04-rotary-starts-again": Finding(("attention", *STACK), "pieces equal the whole"),
    "05-window-off-by-one": Finding(
        ("attention", *STACK, "model.attention.window=3"), "cached equals uncached"
    ),
    "06-stale-cache": Finding(("attention", *STACK), "cached equals uncached"),
    "07-slots-of-the-longest-row": Finding(("attention", *STACK), "cached equals uncached"),
    "08-reversed-with-padding": Finding(("text-classification", *ENCODER), "other rows change nothing"),
    "09-detached-parameter": Finding(("mamba", *STACK), "every parameter learns", "Mamba"),
    "10-memory-mask-forgotten": Finding(
        ("translation", *STACK, *ENCODER), "more padding changes nothing (source)"
    ),
    "11-norm-over-the-batch": Finding(("attention", *STACK, "model.norm=layer"), "other rows change nothing"),
    "12-start-counts-from-one": Finding(
        ("attention", *STACK, "model.positions.kind=learned"), "init_state is the start"
    ),
    "13-dropout-in-evaluation": Finding(
        ("text-classification", *ENCODER, "model.dropout=0.1"), "keeps nothing between calls"
    ),
    "14-routing-over-the-batch": Finding(("moe", *STACK), "other rows change nothing"),
    "15-positions-in-a-set": Finding(
        ("text-classification", *ATTENTION, "model.encoder.positions.kind=none"),
        "the order of places changes nothing",
    ),
    "16-mean-over-padding": Finding(
        ("text-classification", *ENCODER), "other rows change nothing", "TextEncoder"
    ),
    "17-padding-in-the-norm": Finding(("series-resnet",), "more padding changes nothing in training"),
    "18-untied-table": Finding(("attention", *STACK, "model.tie_embeddings=true"), "tied tables are one"),
    "19-bfloat16-sums": Finding(
        ("attention", *STACK, "data.tokenizer=bpe", "data.vocab_size=2000"), "precisions agree"
    ),
    "20-beam-leaves-its-state": Finding(("lstm", *STACK), "a beam follows its hypotheses"),
}
RUN_FINDINGS = {
    "21-vocabulary-in-another-order": Finding((), "it decodes what it encodes", "processor"),
    "22-optimizer-forgets": Finding(
        (), "a training that is stopped and resumed ends as one that is not", "training"
    ),
    "23-batches-start-again": Finding((), "give the hashes of checkpoint", "training"),
}
QUICK = {"07-slots-of-the-longest-row", "20-beam-leaves-its-state", "22-optimizer-forgets"}
"""The bugs that are searched with every change; the others take minutes together."""


def cases(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", cases(FINDINGS))
def test_the_bug_of_a_model_is_found(name: str, tmp_path: Path) -> None:
    target, law, part = FINDINGS[name]
    result = check(patched_copy(tmp_path, BUGS / f"{name}.patch"), *target)
    assert result.returncode == 1, result.stderr
    broken = {(each["part"], each["law"]) for each in laws_of(result) if each["verdict"] == "BROKEN"}
    assert any(part in each and law == broken_law for each, broken_law in broken), broken
    assert " breaks '" in result.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_run(tmp_path_factory.mktemp("trained"))


@pytest.mark.parametrize("name", cases(RUN_FINDINGS))
def test_the_bug_of_a_run_is_found(name: str, run: Path, tmp_path: Path) -> None:
    _, law, part = RUN_FINDINGS[name]
    result = check(patched_copy(tmp_path, BUGS / f"{name}.patch"), str(run))
    assert result.returncode == 1, result.stderr
    broken = [each for each in laws_of(result) if each["verdict"] == "BROKEN"]
    assert any(each["part"] == part and law in each["law"] for each in broken), broken


@pytest.mark.parametrize("name", [*FINDINGS, *RUN_FINDINGS])
def test_each_patch_fits(name: str) -> None:
    assert patched_files((BUGS / f"{name}.patch").read_text(), Path(foveal.__file__).parents[1])


def test_each_bug_is_searched() -> None:
    assert {path.stem for path in BUGS.glob("*.patch")} == {*FINDINGS, *RUN_FINDINGS}


@pytest.mark.slow
def test_without_a_bug_all_laws_hold(run: Path, tmp_path: Path) -> None:
    copy = patched_copy(tmp_path, None)
    for target in {(str(run),), *(finding.target for finding in FINDINGS.values())}:
        result = check(copy, *target)
        assert result.returncode == 0, result.stderr
        assert "BROKEN" not in {each["verdict"] for each in laws_of(result)}


def check(copy: Path, *target: str) -> subprocess.CompletedProcess[str]:
    """Run `foveal check` of a copy of the package."""
    command = [sys.executable, "-m", "foveal", "check", *target, "--json"]
    return subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(copy)}, cwd=copy, capture_output=True, text=True
    )


def laws_of(result: subprocess.CompletedProcess[str]) -> list[dict[str, str]]:
    laws: list[dict[str, str]] = json.loads(result.stdout)["laws"]
    return laws
