"""Error rates by hand, by jiwer's command line, and where references are empty."""

import subprocess
import sys

import numpy as np
import pytest

from foveal.metrics.recognition import cer, exact_match, wer

REFERENCES = ["the cat sat on the mat", "seven", "nine  eight one", "zero"]
OUTPUTS = ["the cat sit on mat now please", "seven", "eight one", ""]


def test_word_errors_by_hand() -> None:
    """sit for sat; `the` left out, `now please` added (as two replaced and one added); nine; zero."""
    score = wer(REFERENCES, OUTPUTS)
    assert score.per_example == pytest.approx([4 / 6, 0, 1 / 3, 1])
    assert score.value == pytest.approx((4 + 0 + 1 + 1) / (6 + 1 + 3 + 1))
    assert not score.higher_is_better


def test_character_errors_by_hand() -> None:
    score = cer(["abc d", "xyz"], ["abd", "xyz!"])
    assert score.per_example == pytest.approx([2 / 5, 1 / 3])  # c and the blank left out
    assert score.value == pytest.approx(3 / 8)


@pytest.mark.parametrize(("score", "option"), [(wer, []), (cer, ["--cer"])], ids=["wer", "cer"])
def test_the_command_lines_figures(score, option, tmp_path) -> None:
    (tmp_path / "ref").write_text("\n".join(REFERENCES), encoding="utf-8")
    (tmp_path / "out").write_text("\n".join([*OUTPUTS[:3], "nought"]), encoding="utf-8")
    command = [sys.executable, "-c", "from jiwer.cli import cli; cli()", "-r", "ref", "-h", "out", *option]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert score(REFERENCES, [*OUTPUTS[:3], "nought"]).value == pytest.approx(float(done.stdout))


@pytest.mark.parametrize("score", [wer, cer])
def test_identical_is_0_and_empty_output_is_1(score) -> None:
    assert score(REFERENCES, REFERENCES).value == 0
    assert score(REFERENCES, [""] * 4).value == 1
    assert score(REFERENCES, [""] * 4).per_example.tolist() == [1] * 4


def test_words_for_an_empty_reference_are_errors() -> None:
    score = wer(["one two", "", " ", ""], ["one two", "three four five", "", "x"])
    assert score.per_example.tolist() == [0, 3, 0, 1]
    assert score.value == 4 / 2
    assert score.on_rows(np.array([1, 3])) == 4  # no word in any reference
    assert cer([""], ["ab c"]).value == 4


def test_exact_is_every_character() -> None:
    score = exact_match(["a b", "c", "d"], ["a b", "c ", "d"])
    assert score.per_example.tolist() == [1, 0, 1]
    assert score.value == pytest.approx(2 / 3)
