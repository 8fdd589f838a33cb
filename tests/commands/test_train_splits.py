"""The line that tells which parts of DATA a training uses."""

from pathlib import Path

import pytest

from tests.support.command_line import succeed

LABELED = "text,label\n" + "".join(f"text {number} is here,{'ab'[number % 2]}\n" for number in range(12))
UNLABELED = "\n".join(line.partition(",")[0] for line in LABELED.splitlines())
BLANK = UNLABELED.replace("\n", ",\n").replace("text,", "text,label", 1)


@pytest.mark.parametrize(
    ("test", "more", "line"),
    [
        (LABELED, (), "splits: train train.csv, test test.csv"),
        (UNLABELED, (), "splits: train train.csv; not used: test.csv"),
        (BLANK, (), "splits: train train.csv; not used: test.csv"),
        (LABELED, ("--test", "other.csv"), "splits: train train.csv; not used: test.csv"),
    ],
)
def test_parts_that_are_left_out_are_not_listed_as_splits(
    test: str, more: tuple[str, ...], line: str
) -> None:
    Path("data").mkdir()
    Path("data/train.csv").write_text(LABELED)
    Path("data/test.csv").write_text(test)
    Path("other.csv").write_text(LABELED)
    told = succeed("train", "data", *more, "model.encoder.width=16", "--budget", "1step")
    assert line in told.err.splitlines()
