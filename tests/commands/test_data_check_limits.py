"""`foveal data check` compares held-out rows first, and says what its limits leave out."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from foveal.studies.data_check import near_texts, pictures
from tests.support.checked_data import clean_rows, findings, only, write
from tests.support.command_line import succeed


def test_held_out_texts_are_compared_though_train_has_more_than_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_texts, "MAX_TEXTS", 30)
    rows, held_out, tested = clean_rows(), clean_rows(3, seed=1), clean_rows(2, seed=2)
    write("a.csv", [*rows, ("too short", "up")])
    write("b.csv", [*held_out, (f"{rows[5][0]} nala", "down")])
    write("c.csv", [*tested, (f"{rows[6][0]} nala", "down"), (f"{held_out[1][0]} nala", "up")])
    near, limit = findings("a.csv", "--valid", "b.csv", "--test", "c.csv")
    assert near["message"].startswith("3 pairs of nearly equal texts, each in two splits")
    assert sorted(near["rows"]) == [
        "b.csv, line 5 (valid) ~ a.csv, line 7 (train)",
        "c.csv, line 4 (test) ~ a.csv, line 8 (train)",
        "c.csv, line 5 (test) ~ b.csv, line 3 (valid)",
    ]
    assert (limit["check"], limit["severity"], limit["count"]) == ("nearly equal texts", "note", 38)
    assert limit["message"] == (
        "only 30 of 68 texts are compared, the first of each split: 22 of 60 in train, 4 of 4 in valid, "
        "4 of 4 in test"
    )


def test_more_held_out_texts_than_are_compared_leave_half_for_train(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_texts, "MAX_TEXTS", 30)
    rows, tested = clean_rows(), clean_rows(seed=1)
    write("a.csv", rows)
    write("b.csv", clean_rows(seed=2))
    write("c.csv", [(f"{rows[14][0]} nala", "up"), *tested])
    near, limit = findings("a.csv", "--valid", "b.csv", "--test", "c.csv")
    assert near["rows"] == ["c.csv, line 2 (test) ~ a.csv, line 16 (train)"]
    assert limit["message"].endswith("15 of 60 in train, 0 of 60 in valid, 15 of 61 in test")


def test_limits_are_said_where_nothing_else_is_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.csv", clean_rows())
    write("b.csv", clean_rows(5, seed=1))
    assert not findings("a.csv", "--test", "b.csv")
    monkeypatch.setattr(near_texts, "MAX_TEXTS", 64)
    monkeypatch.setattr(near_texts, "MAX_WORDS", 11)
    told = succeed("data", "check", "a.csv", "--test", "b.csv").out
    assert "2 notes in 65 rows" in told
    assert "only 64 of 65 texts are compared" in told
    assert "64 texts, compared by the first 11 words only" in told


def test_held_out_texts_of_a_crowd_are_compared_with_train(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_texts, "MAX_GROUP", 3)
    text = " ".join(clean_rows(5)[number][0] for number in range(5))
    write("a.csv", [*clean_rows(), (f"{text} one", "up")])
    write("b.csv", [*((f"{text} {letter}", "down") for letter in "abdefgikl"), *clean_rows(4, seed=1)])
    leak, within, limit = findings("a.csv", "--test", "b.csv")
    assert {row for row in leak["rows"] if row.endswith(" ~ a.csv, line 62 (train)")} == {
        f"b.csv, line {line} (test) ~ a.csv, line 62 (train)" for line in range(2, 11)
    }
    assert within["message"].endswith("of nearly equal texts in a split")
    assert limit["message"].startswith("10 texts, each compared with some of over 6 like it only")


def test_held_out_images_are_compared_though_train_has_more_than_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_IMAGES", 10)
    draw = np.random.default_rng(0)
    for part, count in (("train", 14), ("test", 6)):
        for number in range(count):
            path = Path("images", part, ("up", "down")[number % 2], f"{number:02}.png")
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = np.kron(draw.integers(0, 255, (8, 8, 3)), np.ones((3, 3, 1))).astype(np.uint8)
            if (part, number) == ("test", 3):
                copied = np.asarray(Image.open("images/train/down/01.png")).astype(int)
                pixels = (copied + draw.integers(-3, 3, copied.shape)).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(path)
    alike, limit = findings("images")
    assert alike["rows"] == ["images/test, down/03.png (test) ~ images/train, down/01.png (train)"]
    expected = "only 10 of 20 images are compared, the first of each split: 5 of 14 in train, 5 of 6 in test"
    assert limit["message"] == expected
    Path("images/test/down/03.png").unlink()
    assert only("images that look alike", "images")["message"].startswith("only 10 of 19 images")
