"""`foveal data check` finds each planted fault with its rows, and nothing in clean data."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

import foveal
from foveal.inspection.files import SUFFIXES
from tests.support.checked_data import WORDS, clean_rows, findings, only, write
from tests.support.command_line import refuse, succeed


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_clean_data_have_no_findings():
    write("a.csv", clean_rows())
    assert not findings("a.csv")
    assert succeed("data", "check", "a.csv").out.startswith("a.csv: nothing found in 60 rows (train ")


def test_rows_of_train_that_are_held_out():
    rows = clean_rows()
    write("a.csv", rows)
    write("b.csv", [*clean_rows(seed=1), rows[2]])
    finding = only("duplicates", "a.csv", "--test", "b.csv")
    assert finding["severity"] == "problem"
    assert finding["message"].startswith("1 of 61 rows of test have a source that is also in train")
    assert finding["rows"] == ["b.csv, line 62 (test) = a.csv, line 4 (train)"]


def test_rows_of_valid_that_are_tested():
    rows, held_out = clean_rows(), clean_rows(seed=1)
    write("a.csv", rows)
    write("b.csv", held_out)
    write("c.csv", [*clean_rows(seed=2), held_out[4], rows[2], (f"{held_out[5][0]} nala", "down")])
    of_train, of_valid, near = findings("a.csv", "--valid", "b.csv", "--test", "c.csv")
    assert of_train["message"].startswith("1 of 63 rows of test have a source that is also in train")
    assert of_train["rows"] == ["c.csv, line 63 (test) = a.csv, line 4 (train)"]
    assert of_valid["message"].startswith("1 of 63 rows of test have a source that is also in valid")
    assert of_valid["rows"] == ["c.csv, line 62 (test) = b.csv, line 6 (valid)"]
    assert near["message"].startswith("1 pair of nearly equal texts, each in two splits")
    assert near["rows"] == ["c.csv, line 64 (test) ~ b.csv, line 7 (valid)"]


def test_repeated_rows():
    rows = clean_rows()
    write("a.csv", [*rows, rows[3]])
    write("b.csv", clean_rows(seed=1))
    finding = only("duplicates", "a.csv", "--test", "b.csv")
    assert (finding["severity"], finding["count"]) == ("note", 1)
    assert finding["rows"] == ["a.csv, line 62 (train) = a.csv, line 5 (train)"]


def test_several_targets_of_a_source_are_no_repetition():
    texts = [text for text, _ in clean_rows()]
    write("a.csv", [(text, f"{text.upper()} {end}") for text in texts for end in "AB"], "source,target")
    assert not [each for each in findings("a.csv") if each["check"] == "duplicates"]


def test_labels_that_disagree():
    rows = clean_rows()
    write("a.csv", [*rows, (rows[1][0], "up")])
    write("b.csv", clean_rows(seed=1))
    disagree = only("labels that disagree", "a.csv", "--test", "b.csv")
    assert disagree["rows"] == ["a.csv, line 62 (train) is 'up', a.csv, line 3 (train) is 'down'"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (lambda rows: [(text, "up") for text, _ in rows], "all rows have the label 'up'"),
        (lambda rows: [*rows, ("a text of its own", "left")], "a class is in fewer than 5 training rows"),
        (
            lambda rows: [*rows, *((text, "up") for text, _ in clean_rows(400, seed=2))],
            "out of balance: 'up' has 430 training rows (93.5%), 'down' has 30",
        ),
    ],
)
def test_classes(more, message):
    write("a.csv", more(clean_rows()))
    write("b.csv", [("another text", "up")])
    messages = [
        each["message"] for each in findings("a.csv", "--test", "b.csv") if each["check"] == "classes"
    ]
    assert message in messages[0]


def test_a_class_that_is_never_trained():
    write("a.csv", clean_rows())
    write("b.csv", [*clean_rows(seed=1), ("bala demi foru guke", "left")])
    finding = only("classes", "a.csv", "--test", "b.csv")
    assert "a class is only in held-out rows" in finding["message"]
    assert finding["rows"] == ["'left': b.csv, line 62 (test)"]


def test_rows_that_cannot_be_used():
    write("a.csv", [*clean_rows(), ("", "up")])
    finding = only("rows that can't be used", "a.csv")
    assert finding["rows"] == ["a.csv, line 62"]


def test_reasons_of_a_kind_are_one_finding():
    Path("a.jsonl").write_text(
        "".join(f"{json.dumps({'text': text, 'label': label})}\n" for text, label in clean_rows())
        + "".join(f"{{broken {'x' * number}\n" for number in range(5))
    )
    (finding,) = [each for each in findings("a.jsonl") if each["check"] == "rows that can't be used"]
    assert finding["count"] == 5


def test_keys_that_some_objects_lack():
    rows = [{"text": text, "label": label} for text, label in clean_rows()]
    rows[7]["note"] = "x"
    rows[8]["note"] = "y"
    Path("a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    finding = only("columns", "a.jsonl")
    assert finding["rows"] == ["note: 2 of 60"]


def test_empty_and_constant_columns():
    rows = [(*row, "7", "", "x" if number == 3 else "") for number, row in enumerate(clean_rows())]
    write("a.csv", rows, "text,label,year,note,rare")  # type: ignore[arg-type]
    found = {each["message"]: each["rows"] for each in findings("a.csv")}
    assert found == {
        "columns that are empty in all 60 rows of a.csv": ["note"],
        "columns with one value in all rows of a.csv that have any": ["year: '7'"],
        "columns that are empty in more than half of the rows of a.csv": ["rare: 1 of 60"],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("das Caf\u00c3\u00a9 am Eck hat noch auf", "1 row with letters such as"),
        ("das Caf\ufffd am Eck hat noch auf", "1 row with the character U+FFFD"),
        ("eine <b>dicke</b> Zeile hat noch Platz", "1 row with tags or entities of HTML"),
        ("eine Zeile mit einem\x07 Ton darin", "1 row with control characters"),
    ],
)
def test_characters(text, message):
    rows = clean_rows()
    write("a.csv", [*rows, (text, "up")])
    write("b.csv", clean_rows(seed=1))
    finding = only("characters", "a.csv", "--test", "b.csv")
    assert message in finding["message"]
    assert finding["rows"] == ["a.csv, line 62 (train)"]


def test_characters_that_train_lacks():
    write("a.csv", clean_rows())
    write("b.csv", [*clean_rows(seed=1), ("ein \u00fcber", "up")])
    finding = only("characters", "a.csv", "--test", "b.csv")
    assert finding["message"] == "1 character in held-out rows alone: '\u00fc'"


def test_a_long_row():
    write("a.csv", [*clean_rows(), (" ".join(WORDS * 30), "up")])
    write("b.csv", clean_rows(seed=1))
    finding = only("lengths", "a.csv", "--test", "b.csv")
    assert finding["rows"] == [f"a.csv, line 62 (train): {len(' '.join(WORDS * 30)):,}"]


def test_nearly_equal_texts():
    rows = clean_rows()
    write("a.csv", [*rows, (rows[0][0] + " ruke", "up")])
    write("b.csv", [*clean_rows(seed=1), (f"{rows[5][0]} nala", "down")])
    problem, note = findings("a.csv", "--test", "b.csv")
    assert {problem["check"], note["check"]} == {"nearly equal texts"}
    assert problem["rows"] == ["b.csv, line 62 (test) ~ a.csv, line 7 (train)"]
    assert note["rows"] == ["a.csv, line 62 (train) ~ a.csv, line 2 (train)"]


def test_pairs_out_of_step_and_untranslated():
    rows = [(text, text.upper()) for text, _ in clean_rows()]
    rows += [(rows[0][0] + " ok", "A WORD"), (rows[1][0] + " ok", rows[1][0] + " ok")]
    write("a.csv", rows, "source,target")
    write("b.csv", [(text, text.upper()) for text, _ in clean_rows(seed=1)], "source,target")
    found = {
        each["message"]: each["rows"]
        for each in findings("a.csv", "--test", "b.csv")
        if each["check"] == "pairs"
    }
    assert found == {
        "1 row of which one side is 6 times as long as usual for the other": ["a.csv, line 62 (train)"],
        "1 row whose target is its source": ["a.csv, line 63 (train)"],
    }


def test_lines_of_running_text():
    lines = [text for text, _ in clean_rows(200)]
    Path("a.txt").write_text("".join(f"{line}\n" for line in [*lines[:30], "ROMEO:", *lines, "ROMEO:"]))
    finding = only("duplicates", "a.txt")
    assert finding["count"] == 30
    assert finding["rows"][0].endswith("line 32 (train) = " + finding["rows"][0].split(" = ")[1])


def test_images():
    draw = np.random.default_rng(0)
    for part, count in (("train", 12), ("test", 6)):
        for number in range(count):
            path = Path("images", part, ("up", "down")[number % 2], f"{number}.png")
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = np.kron(draw.integers(0, 255, (8, 8, 3)), np.ones((3, 3, 1))).astype(np.uint8)
            if (part, number) == ("train", 4):
                pixels[:] = 200
            if (part, number) == ("test", 3):
                copied = np.asarray(Image.open("images/train/down/5.png")).astype(int)
                pixels = (copied + draw.integers(-3, 3, copied.shape)).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(path)
    found = {each["check"]: each["rows"] for each in findings("images")}
    assert found == {
        "images": ["images/train, up/4.png (train)"],
        "images that look alike": ["images/test, down/3.png (test) ~ images/train, down/5.png (train)"],
    }


def test_recordings():
    draw = np.random.default_rng(0)
    for number in range(16):
        path = Path("sounds", ("up", "down")[number % 2], f"{number:02}.wav")
        path.parent.mkdir(parents=True, exist_ok=True)
        loud = {4: 1e-4, 6: 3.0}.get(number, 0.1)
        soundfile.write(path, draw.normal(0, loud, 4000).clip(-1, 1), 8000, "FLOAT")
    Path("sounds/up/08.wav").write_bytes(b"RIFF")
    found = {each["message"]: each["rows"] for each in findings("sounds", "data.test_fraction=0")}
    messages = [message for message in found if "recording" not in message]
    assert messages == [
        "1 row that can't be used",
        "1 row below -60 dB, which is nearly silent",
        "1 row cut off at full scale",
    ]
    assert "04.wav" in found[messages[1]][0]
    assert "06.wav" in found[messages[2]][0]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_report_is_a_file(suffix):
    rows = clean_rows()
    write("a.csv", [*rows, rows[0]])
    succeed("data", "check", "a.csv", "--out", f"report{suffix}")
    content = Path(f"report{suffix}").read_bytes()
    assert len(content) > 500
    if suffix == ".json":
        assert json.loads(content)["findings"][0]["check"] == "duplicates"


def test_values_in_memory():
    rows = clean_rows()
    texts, labels = zip(*rows, strict=True)
    columns = {"review": [*texts, texts[1]], "mood": [*labels, "up"]}
    held_out = {"review": ["bala demi"], "mood": ["up"]}
    checked = foveal.check_data(columns, text="review", label="mood", test=held_out, quiet=True)
    (problem,) = checked.problems
    assert (problem.check, checked.name) == ("labels that disagree", "dict")
    assert re.fullmatch(r"dict\[60\] \(train\) is 'up', dict\[1\] \(train\) is '.*'", problem.rows[0])
    assert checked.sizes == {"train": 61, "test": 1}
    page = checked._repr_html_()
    assert "<td>labels that disagree</td>" in page
    assert "data:image/png;base64,iVBOR" in page


def test_the_result_in_python_prints_as_the_command_does():
    rows = clean_rows()
    write("a.csv", [*rows, rows[3], ("<b>ein</b> Satz", "up"), ("<i>kein</i> Satz", "down")])
    checked = foveal.check_data("a.csv", quiet=True)
    assert len(checked.findings) > 1
    assert f"{checked}\n" == succeed("data", "check", "a.csv").out
    assert repr(checked) == str(checked)


def test_bad_input_is_one_line():
    Path("blank.txt").write_text("\n" * 500)
    assert "no text" in refuse("data", "check", "blank.txt")
    assert "nothing.csv: no such file" in refuse("data", "check", "nothing.csv")
    write("a.csv", clean_rows())
    assert "expected a name that ends in" in refuse("data", "check", "a.csv", "--out", "a.docx")
    write("b.csv", clean_rows(1))
    assert "a single row" in refuse("data", "check", "b.csv")
