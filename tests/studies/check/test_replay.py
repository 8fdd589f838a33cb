"""Replayed steps are compared with the log: bit for bit, or with sums that differ by a tolerance."""

import json
from pathlib import Path
from typing import Any

import pytest

from foveal.config import Config
from foveal.laws.law import LawBroken
from foveal.store.run import RunFolder
from foveal.studies.check.replay import logged_rounding, require_logged_steps

STEP = {
    "kind": "step",
    "step": 1,
    "epoch": 0.5,
    "tokens": 64,
    "loss": 2.0,
    "terms": {"balance": 1.0, "dropped": 0.0},
    "rate": 0.25,
    "seconds": 3.0,
}


def logged(folder: Path, *records: dict[str, Any]) -> RunFolder:
    folder.mkdir()
    lines = (json.dumps(STEP | {"step": step} | record) for step, record in enumerate(records, 1))
    (folder / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return RunFolder(folder, Config(), {})


@pytest.mark.parametrize(
    ("changed", "needed"),
    [
        ({"seconds": 4.0}, 0.0),
        ({"loss": 2.0005}, 1e-3),
        ({"loss": 1.999}, 1e-3),
        ({"terms": {"balance": 1.0005, "dropped": 0.0}}, 1e-3),
        ({"loss": 2.01}, None),
        ({"loss": None}, None),
        ({"terms": {"balance": 1.0}}, None),
        ({"terms": {"balance": 1.0, "dropped": 0.1}}, None),
        ({"rate": 0.2500001}, None),
        ({"tokens": 65}, None),
    ],
)
def test_only_sums_may_differ_and_by_no_more_than_the_tolerance(
    changed: dict[str, Any], needed: float | None, tmp_path: Path
) -> None:
    run, again = logged(tmp_path / "run", {}, {}), logged(tmp_path / "again", {}, changed)
    for tolerance in (0.0, 1e-3):
        if needed is not None and tolerance >= needed:
            require_logged_steps(again, run, 1, 2, tolerance)
        else:
            with pytest.raises(LawBroken) as broken:
                require_logged_steps(again, run, 1, 2, tolerance)
            assert broken.value.place == "step 2"


def test_what_rounded_some_steps_is_read_from_the_log(tmp_path: Path) -> None:
    run = logged(
        tmp_path / "run", {}, {}, {"rounding": "--fsdp"}, {"kind": "refused", "rounding": "2 threads"}
    )
    assert logged_rounding(run, 1, 2) == ""
    assert logged_rounding(run, 2, 4) == "--fsdp, then 2 threads"
    assert logged_rounding(run, 4, 9) == "2 threads"
