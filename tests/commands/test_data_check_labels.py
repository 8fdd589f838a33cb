"""`foveal data check` looks at labels of places, at answers, and at the lengths of recordings."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from tests.support.checked_data import clean_rows, findings
from tests.support.command_line import succeed
from tests.support.shape_questions import write_questions

Sentence = tuple[list[str], list[str]]


def sentences(count: int = 30, seed: int = 0) -> list[Sentence]:
    """Return texts whose words are tagged in turn."""
    texts = (text.split() for text, _ in clean_rows(count, seed))
    return [(words, ["N", "V"] * (len(words) // 2)) for words in texts]


def write_sentences(path: str, rows: list[Sentence]) -> None:
    lines = (json.dumps({"tokens": words, "tags": tags}) for words, tags in rows)
    Path(path).write_text("".join(f"{line}\n" for line in lines))


def write_series(path: str, rows: list[tuple[list[float], list[str]]]) -> None:
    lines = (json.dumps({"values": [[value] for value in values], "labels": names}) for values, names in rows)
    Path(path).write_text("".join(f"{line}\n" for line in lines))


def messages(*arguments: str) -> dict[str, dict[str, Any]]:
    return {finding["message"]: finding for finding in findings(*arguments)}


def test_tags_of_words() -> None:
    train, test = sentences(), sentences(4, seed=1)
    words, tags = train[1]
    rare = sentences(1, seed=2)[0][0]
    train += [(words, [*tags[:3], "N", *tags[4:]]), (rare, ["X"] * 2 + ["N"] * 10)]
    write_sentences("a.jsonl", train)
    write_sentences("b.jsonl", [*test[:3], (test[3][0], ["Z", *test[3][1][1:]])])
    found = messages("a.jsonl", "--test", "b.jsonl")
    disagree = found.pop("1 row with the source of another row, and with another label")
    assert disagree["rows"] == [
        "a.jsonl, line 31 (train) is 'N' at word 4, a.jsonl, line 2 (train) is 'V' at word 4"
    ]
    missing, rare_tags, balance = (each for each in found.values() if each["check"] == "classes")
    assert missing["message"] == "a class is only in held-out rows, and so never trained"
    assert missing["rows"] == ["'Z': b.jsonl, line 4 (test)"]
    assert rare_tags["message"] == "a class is in fewer than 5 training words"
    assert rare_tags["rows"] == ["'X': 2, the first in a.jsonl, line 32 (train)"]
    assert balance["message"] == ("out of balance: 'N' has 197 training words (51.3%), 'X' has 2")
    assert balance["rows"] == ["'X': the first in a.jsonl, line 32 (train)"]
    told = json.loads(succeed("data", "check", "a.jsonl", "--test", "b.jsonl", "--json").out)
    assert told["classes"]["X"] == [2, 0]
    assert told["classes"]["Z"] == [0, 1]


def test_one_tag_for_all_words() -> None:
    write_sentences("a.jsonl", [(words, ["N"] * len(words)) for words, _ in sentences()])
    found = messages("a.jsonl")
    assert found["all words have the label 'N', so there is nothing to learn"]["advice"].endswith(
        "(data.tags=NAME)"
    )


def test_labels_of_steps() -> None:
    draw = np.random.default_rng(0)
    rows = [(draw.normal(size=8).tolist(), ["low", "high"] * 4) for _ in range(20)]
    values, names = rows[2]
    write_series("a.jsonl", [*rows, (values, [*names[:7], "low"])])
    write_series("b.jsonl", [(draw.normal(size=8).tolist(), ["low", "high", "new", *names[3:]])])
    found = messages("a.jsonl", "--test", "b.jsonl")
    assert found["1 row with the source of another row, and with another label"]["rows"] == [
        "a.jsonl, line 21 (train) is 'low' at step 8, a.jsonl, line 3 (train) is 'high' at step 8"
    ]
    assert found["a class is only in held-out rows, and so never trained"]["rows"] == [
        "'new': b.jsonl, line 1 (test)"
    ]


def test_labels_of_frames() -> None:
    draw = np.random.default_rng(0)
    Path("sounds").mkdir()
    for number in range(12):
        soundfile.write(f"sounds/{number:02}.wav", draw.normal(0, 0.1, 800), 8000)
    soundfile.write("sounds/12.wav", soundfile.read("sounds/03.wav")[0], 8000)
    rows = [{"file_name": f"{number:02}.wav", "labels": "tone noise"} for number in range(12)]
    rows.append({"file_name": "12.wav", "labels": "tone tone"})
    Path("sounds/metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (disagree,) = [
        each for each in findings("sounds", "data.test_fraction=0") if each["check"] == "labels that disagree"
    ]
    assert "'tone' at frame 2" in disagree["rows"][0]
    assert "'noise' at frame 2" in disagree["rows"][0]


def test_answers_to_questions_about_images() -> None:
    folder = write_questions(count=20)
    table = Path(folder, "metadata.csv")
    header, *rows = table.read_text().splitlines()
    name, question, _ = rows[0].split(",")
    table.write_text("\n".join([header, *rows, f"{name},{question},plaid", ""]))
    options = (folder, "--task", "vqa", "data.image.size=12")
    (place,) = messages(*options)["1 row with the source of another row, and with another label"]["rows"]
    assert "is 'plaid'" in place
    classes = json.loads(succeed("data", "check", *options, "--json").out)["classes"]
    assert sum(classes["plaid"]) == 1


@pytest.mark.parametrize("task", ["vqa-generate", "vqa-multiple-choice"])
def test_answers_that_are_no_classes(task: str) -> None:
    folder = write_questions("shapes", "choices", count=10)
    assert "classes" not in {each["check"] for each in findings(folder, "--task", task, "data.image.size=12")}


def test_a_long_recording() -> None:
    draw = np.random.default_rng(0)
    for number in range(12):
        path = Path("sounds", ("up", "down")[number % 2], f"{number:02}.wav")
        path.parent.mkdir(parents=True, exist_ok=True)
        seconds = 5.0 if number == 7 else 0.2
        soundfile.write(path, draw.normal(0, 0.1, int(seconds * 8000)), 8000)
    Path("sounds/up/08.wav").write_bytes(b"RIFF")
    found = messages("sounds", "data.test_fraction=0")
    finding = found["1 row more than 20 times as long as the median of 0.2 s"]
    assert finding["check"] == "lengths"
    assert finding["rows"][0].startswith("sounds, down/07.wav (")
    assert finding["rows"][0].endswith("): 5.0 s")
    assert "data.max_seconds" in finding["advice"]
    succeed("data", "check", "sounds", "data.test_fraction=0", "--out", "sounds.html")
    assert "length" in Path("sounds.html").read_text()
