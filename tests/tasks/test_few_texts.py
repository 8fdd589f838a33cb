"""A plain word before few texts are trained on: where they will not do, and only there."""

import csv
import random
from pathlib import Path

import pytest

from foveal.tasks.registry import all_tasks, task_class
from foveal.tasks.shapes.few_texts import FewTexts
from foveal.tasks.shapes.text_target import SequenceToSequenceTask
from tests.support import captioned_shapes, small_films
from tests.support.command_line import succeed
from tests.support.small_texts import write_pairs, write_tones
from tests.support.told_series import write_series

FEW = FewTexts(100, "rows", "So it was", "more")
CLASSIFY = "--task some data.label=text"
NAMES = ("speech-recognition", "captioning", "video-captioning", "series-captioning", "translation")


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def varied(count: int) -> list[str]:
    """Return texts in which a word occurs about twice."""
    draw = random.Random(0)
    return [" ".join(f"w{draw.randrange(2 * count)}" for _ in range(4)) for _ in range(count)]


@pytest.mark.parametrize("count", [0, 100, 2000])
def test_nothing_is_said_of_no_rows_and_of_enough(count: int) -> None:
    assert FEW.advice("data", varied(count) if count else [], CLASSIFY) == ""


def test_few_words_that_are_used_often_are_learned() -> None:
    draw = random.Random(0)
    digits = [" ".join(draw.choices("0123456789", k=5)) for _ in range(99)]
    assert FEW.advice("data", digits, CLASSIFY) == ""


def test_many_words_are_too_many_for_few_rows() -> None:
    told = FEW.advice("my data", varied(60), "")
    assert told.startswith("60 rows are too few to learn to write such texts: a word occurs ")
    assert told.endswith("times on average. So it was. What would do: more")


@pytest.mark.parametrize(
    ("texts", "is_classified"),
    [
        (["go left", "go right"] * 20, True),
        (["go left", "go right"] * 20 + ["stop"], False),
        ([f"text {number}" for number in range(49)] * 2, True),
        ([f"text {number}" for number in range(50)] * 2, False),
        (["the same"] * 20, False),
    ],
)
def test_few_different_texts_are_classified(texts: list[str], is_classified: bool) -> None:
    few = FewTexts(1000, "rows", "So it was", "more")
    command = "foveal train 'my data' --task some data.label=text"
    assert (command in few.advice("my data", texts, CLASSIFY)) is is_classified
    assert command not in few.advice("my data", texts, "")


@pytest.mark.parametrize("name", NAMES)
def test_the_figures_of_each_task_are_said_in_a_line(name: str) -> None:
    task = task_class(name)
    assert issubclass(task, SequenceToSequenceTask)
    assert task.few_texts is not None
    told = task.few_texts.advice("data", varied(300), "")
    assert "\n" not in told
    assert "300 " in told


def test_strings_by_a_rule_are_learned_from_few() -> None:
    few = {name: getattr(task, "few_texts", None) for name, task in all_tasks().items()}
    assert {name for name, advice in few.items() if advice is not None} == {*NAMES}


def tones() -> str:
    write_tones("tones")
    return "tones"


def films() -> str:
    return small_films.write_films()


def pairs() -> str:
    write_pairs()
    rows = [["source", "target"], *([f"say {number}", f"answer {number % 4}"] for number in range(40))]
    with Path("pairs.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return "pairs.csv"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "task", "settings"),
    [
        (tones, "audio-classification", ("data.label=text",)),
        (captioned_shapes.write_shapes, "image-classification", ("data.label=text",)),
        (films, "video-classification", ("data.label=text",)),
        (pairs, "text-classification", ("data.text=source", "data.label=target")),
    ],
)
def test_the_command_that_is_named_trains(write: object, task: str, settings: tuple[str, ...]) -> None:
    """The command is taken from the line, which comes before the training and is told once."""
    assert callable(write)
    data = write()
    own = {"text-classification": (), "video-classification": ("--task", "video-captioning")}.get(task, ())
    told = succeed("train", data, *own, "--run", "run", "--budget", "1steps").err
    command = f"foveal train {data} --task {task} {' '.join(settings)}"
    assert told.count(command) == 1
    assert told.index(command) < told.index("first loss")
    succeed("train", *command.split()[2:], "--run", "labels", "--budget", "1steps")


def test_a_model_that_is_named_is_not_questioned() -> None:
    write_series("moves.jsonl")
    lines = Path("moves.jsonl").read_text().splitlines()
    texts = varied(len(lines))
    lines = [line.replace('"text": "', f'"text": "{text} ') for line, text in zip(lines, texts, strict=True)]
    Path("moves.jsonl").write_text("\n".join(lines))
    told = succeed("train", "moves.jsonl", "--run", "run", "--budget", "1steps").err
    assert "60 series with a text are too few" in told
    told = succeed(
        *("train", "moves.jsonl", "--model", "series-captioning", "--run", "other", "--budget", "1steps")
    ).err
    assert "too few" not in told
