"""The forms of words by hand: known, unknown, short and long ones."""

from pathlib import Path

import numpy as np
import pytest

from foveal.core.errors import UserError
from foveal.data.text import word_vocabulary
from foveal.data.text.word_vocabulary import FORMS, MAX_CHARACTERS, WordVocabulary, load_vocabulary

WORDS = ["The", "the", "walking", "talking", "walked", "é"]


def form_of(vocabulary: WordVocabulary) -> dict[int, str]:
    return dict(enumerate(vocabulary.form_counts, 1))


def test_words_beginnings_and_endings_are_counted() -> None:
    vocabulary = WordVocabulary.fit(WORDS)
    assert [*vocabulary.counts.items()][:2] == [("the", 2), ("talking", 1)]
    counts = vocabulary.form_counts
    assert {form: counts[form] for form in counts if "\0" in form} == {
        "t\0": 3,  # the (twice) and talking
        "w\0": 2,
        "wa\0": 2,
        "wal\0": 2,
        "\0g": 2,
        "\0ng": 2,
        "\0ing": 2,
        "\0king": 2,
    }


def test_a_word_is_encoded_as_its_forms_and_characters() -> None:
    vocabulary = WordVocabulary.fit(WORDS)
    names = form_of(vocabulary) | {0: ""}
    known, unknown, short = vocabulary.encode(["Walking", "stalking", "a"])
    assert [names[form] for form in known[:FORMS]] == [
        *("walking", "w\0", "wa\0", "wal\0"),
        *("\0g", "\0ng", "\0ing", "\0king"),
    ]
    assert [names[form] for form in unknown[:FORMS]] == ["", "", "", "", "\0g", "\0ng", "\0ing", "\0king"]
    assert not short[:FORMS].any()
    letters = "".join(vocabulary.characters[i - 2] if i > 1 else "?" for i in known[FORMS:] if i)
    assert letters == "?alking"  # no word of training has a capital W
    assert len(set(unknown[FORMS:])) == len({*"stalking"}) + 1  # and the edge


def test_words_at_their_limits() -> None:
    vocabulary = WordVocabulary.fit(["abcdefghijklmnopqrstuvwxyz0123456789", "x"])
    long, full = vocabulary.encode(["abcdefghijklmnopqrstuvwxyz0123456789", "x" * MAX_CHARACTERS])
    read = "".join(vocabulary.characters[i - 2] for i in long[FORMS:])
    assert read == "abcdefghijklyz0123456789"
    assert full[FORMS:].all()
    assert vocabulary.encode([]).shape == (0, FORMS + MAX_CHARACTERS)


def test_the_most_frequent_words_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_vocabulary, "MAX_WORDS", 2)
    assert WordVocabulary.fit([*"cbabcbz"]).counts == {"b": 3, "c": 2}


def test_a_vocabulary_is_stored_whole(tmp_path: Path) -> None:
    vocabulary, path = WordVocabulary.fit(WORDS), tmp_path / "vocabulary.json"
    path.write_bytes(vocabulary.to_json())
    again = load_vocabulary(path)
    assert [*again.form_counts.items()] == [*vocabulary.form_counts.items()]
    assert np.array_equal(again.encode(["talking", "new"]), vocabulary.encode(["talking", "new"]))


@pytest.mark.parametrize(
    "content", [None, "{", "[]", '{"words": [["a"]], "characters": ""}', '{"words": []}']
)
def test_a_damaged_vocabulary_is_named(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError, match=r"vocabulary\.json"):
        load_vocabulary(path)
