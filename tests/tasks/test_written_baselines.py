"""Baselines of written answers: of training alone, by the task's own metric, and none of them a crash."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from foveal.metrics.recognition import exact_match, wer
from foveal.tasks.baseline import Baseline, best_baseline
from foveal.tasks.shapes.text_baseline import text_memory, typical_text
from foveal.tasks.translation import TranslationTask
from foveal.tasks.vqa.frequent_answers import FrequentAnswers
from tests.support import captioned_shapes, shape_questions, small_films
from tests.support.command_line import succeed
from tests.support.small_films import FRAMES, NARRATE
from tests.support.small_texts import PAIRS, SPEECH, STRINGS, write_pairs, write_tones
from tests.support.told_series import SMALL as SERIES
from tests.support.told_series import write_series

HELD_OUT = ("data.valid_fraction=0.1", "data.test_fraction=0.3")
BLIND = "the most frequent answer to the question's first words, without the image"


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def baseline_of(data: str, *arguments: str) -> tuple[dict[str, object], str]:
    told = succeed("train", data, *arguments, "--run", "run", "--json", "--budget", "1steps")
    baseline = json.loads(told.out)["baseline"]
    assert re.search(rf"^baseline +{[*baseline][1]} [\d.]+.*: {baseline['name']}$", told.err, re.MULTILINE)
    return baseline, told.err


def copies() -> str:
    rows = "".join(f"word {number} again\tword {number} again\n" for number in range(60))
    Path("copies.tsv").write_text(f"source\ttarget\n{rows}")
    return "copies.tsv"


def pairs() -> str:
    write_pairs()
    return "pairs.tsv"


def tones() -> str:
    write_tones("tones")
    return "tones"


def series() -> str:
    write_series("moves.jsonl")
    return "moves.jsonl"


def pictures() -> str:
    return captioned_shapes.write_shapes()


def films() -> str:
    return small_films.write_films()


@pytest.mark.parametrize(
    ("write", "settings", "name", "metric"),
    [
        (copies, (*PAIRS, "--task", "translation"), "a copy of the source", "chrf"),
        (copies, (*STRINGS, "--task", "transduction"), "a copy of the source", "exact"),
        (pairs, (*PAIRS, "--task", "translation"), "training", "bleu"),
        (tones, (*SPEECH, *HELD_OUT), "nearest training row by summary statistics", "wer"),
        (series, SERIES, "nearest training row by summary statistics", "chrf"),
        (pictures, captioned_shapes.SMALL, "nearest training row by 16 x 16 pixels", "chrf"),
        (films, (*small_films.SMALL, *NARRATE), "nearest training row by the means and changes", "chrf"),
        (films, (*small_films.SMALL, *FRAMES), "the most frequent label", "accuracy"),
    ],
)
def test_each_task_that_writes(
    write: Callable[[], str], settings: tuple[str, ...], name: str, metric: str
) -> None:
    baseline, _ = baseline_of(write(), *settings)
    assert name in str(baseline["name"])
    assert metric in baseline


@pytest.mark.slow
@pytest.mark.parametrize("way", ["vqa", "vqa-generate", "vqa-multiple-choice"])
def test_questions_are_answered_without_the_image(way: str) -> None:
    shape_questions.write_questions("shapes", "choices", "history")
    baseline, _ = baseline_of("shapes", *shape_questions.SMALL, "--task", way)
    assert baseline["name"] == BLIND


def test_speech_that_is_never_repeated_is_no_better_than_nothing() -> None:
    write_tones("tones")
    table = Path("tones/metadata.csv")
    lines = [f"{line}{number}" for number, line in enumerate(table.read_text().splitlines()[1:])]
    table.write_text("\n".join(["file_name,text", *lines]))
    baseline, told = baseline_of("tones", *SPEECH, *HELD_OUT)
    assert baseline == {"name": "writing nothing", "wer": 1.0}
    assert re.search("this model is no better than writing nothing: (both have )?wer ", told)


def test_the_texts_are_those_of_training() -> None:
    Path("train.tsv").write_text("source\ttarget\n" + "".join(f"a b {n}\tone two\n" for n in range(40)))
    Path("test.tsv").write_text("source\ttarget\nb a 1\tone\nb a 2\tone\n")
    baseline, _ = baseline_of("train.tsv", "--test", "test.tsv", *STRINGS, "--task", "transduction")
    assert baseline["exact"] == 0


def test_rows_with_other_numbers_of_choices() -> None:
    frequent = FrequentAnswers.fit(["is it red ?", "Is it red ?", "is it big ?"], ["yes", "yes", "no"])
    assert frequent.predict("is it red now ?") == "yes"
    assert frequent.predict("is it big ?") == "no"
    assert frequent.predict("is it big ?", ["maybe", "yes"]) == "yes", "of a shorter beginning"
    assert frequent.predict("why ?", ["so", "thus"]) == "so"
    assert FrequentAnswers.fit([], []).predict("why ?") == ""


@pytest.mark.parametrize(
    ("texts", "typical"),
    [
        (["a red bar", "a red post", "a red bar", "blue"], "a red bar"),
        (["dogs run home", "a dog runs home", "a dog runs", "xyz"], "a dog runs home"),
        (["only"], "only"),
        ([""], ""),
    ],
)
def test_a_typical_text(texts: list[str], typical: str) -> None:
    assert typical_text(texts) == typical


def test_the_best_method_by_a_rate_of_errors_has_the_fewest() -> None:
    answers = {"much": ["a b c d e"] * 2, "little": [""] * 2}
    baseline = best_baseline(answers, ["x", "y"], wer)
    assert baseline == Baseline("little", "wer", 1.0, higher_is_better=False)
    assert best_baseline({}, ["x"], wer) is None


def test_the_best_method_is_scored_on_all_rows() -> None:
    references = ["b"] * 3000
    references[1] = "a"  # not among the rows on which methods are compared
    baseline = best_baseline({"a": ["a"] * 3000, "c": ["c"] * 3000}, references, exact_match)
    assert baseline is not None
    assert (baseline.name, baseline.value) == ("a", 1 / 3000)


@pytest.mark.parametrize(
    ("higher", "rate", "own", "value", "beaten"),
    [
        (True, True, 0.5, 0.6, True),
        (True, True, 0.5, 0.5, False),
        (True, True, 1.0, 1.0, True),
        (False, True, 0.5, 0.4, True),
        (False, True, 0.5, 0.6, False),
        (False, True, 0.0, 0.0, True),
        (True, False, 1.0, 1.0, False),
    ],
)
def test_which_score_beats_a_baseline(
    higher: bool, rate: bool, own: float, value: float, beaten: bool
) -> None:
    assert Baseline("it", "score", own, higher, rate).is_beaten_by(value) is beaten


def test_a_score_that_is_no_rate_is_not_shown_in_percent() -> None:
    assert Baseline("it", "bleu", 12.345, is_rate=False).in_words(12.345) == "12.35"


def test_the_warning_gives_no_advice_that_is_of_no_use() -> None:
    usual = Baseline("the most frequent", "accuracy", 0.8)
    assert not usual.warning(0.81, True)
    assert usual.warning(0.75, True) == (
        "this model is no better than the most frequent: accuracy 75.0 % against 80.0 %; give more rows, "
        "train longer, or try another --model"
    )
    same = usual.warning(0.8, False)
    assert "no better than the most frequent: both have accuracy 80.0 %; give more rows, or try" in same
    assert Baseline("it", "wer", 1.0).in_words(1.234) == "123.4 %"


def test_the_memory_of_the_baseline_is_told() -> None:
    """Features of all rows, or those of the sources and their distances, whichever is more."""
    few, many = (text_memory(TranslationTask.source, rows, 100) for rows in (100, 5000))
    assert many > 20 * few
    assert many == text_memory(TranslationTask.source, 500_000, 100) > 4 * 5000 * 4096
