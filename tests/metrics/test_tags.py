"""Entities as conlleval reads them, and F1 over them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveal.core.errors import UserError
from foveal.metrics.labels import macro_f1
from foveal.metrics.tags import are_entity_tags, entity_f1, entity_spans, tag_accuracy, tag_macro_f1

TAGS = ["O", *(f"{kind}-{label}" for kind in "BIES" for label in ("PER", "LOC"))]
sentences = st.lists(st.sampled_from(TAGS), max_size=12)

STARTS = {"BB", "IB", "OB", "EB", "SB", "BS", "IS", "OS", "ES", "SS", "OI", "EI", "SI", "OE", "EE", "SE"}
"""conlleval: an entity begins at a tag of the second kind behind one of the first, of whatever type."""


def begins(before: str, tag: str) -> bool:
    return before[0] + tag[0] in STARTS or (tag != "O" and before[2:] != tag[2:])


def conlleval(tags: list[str]) -> list[tuple[str, int, int]]:
    """Its tables: where entities begin; they end before the next begins, or before O."""
    previous = ["O", *tags]
    starts = [i for i, tag in enumerate(tags) if begins(previous[i], tag)]
    found = []
    for start in starts:
        end = start
        while end + 1 < len(tags) and tags[end + 1] != "O" and end + 1 not in starts:
            end += 1
        found.append((tags[start][2:], start, end))
    return found


@given(sentences)
def test_spans_are_conllevals(tags: list[str]) -> None:
    assert entity_spans(tags) == conlleval(tags)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-A I-A O B-A", [("A", 0, 1), ("A", 3, 3)]),
        ("B-A B-A", [("A", 0, 0), ("A", 1, 1)]),
        ("S-A B-B E-B", [("A", 0, 0), ("B", 1, 2)]),
        ("O I-A I-A", [("A", 1, 2)]),  # malformed from here
        ("B-A I-B I-B", [("A", 0, 0), ("B", 1, 2)]),
        ("B-A E-A I-A", [("A", 0, 1), ("A", 2, 2)]),
        ("B-A I-A O E-A", [("A", 0, 1), ("A", 3, 3)]),
        ("B-a-b I-a-b", [("a-b", 0, 1)]),
        ("", []),
    ],
)
def test_spans_by_hand(tags: str, expected: list[tuple[str, int, int]]) -> None:
    assert entity_spans(tags.split()) == expected


def test_entity_f1_as_in_seqevals_documentation() -> None:
    """One of two entities: precision, recall and F1 of 0.5."""
    gold = [["O", "O", "O", "B-MISC", "I-MISC", "I-MISC", "O"], ["B-PER", "I-PER", "O"]]
    found = [["O", "O", "B-MISC", "I-MISC", "I-MISC", "I-MISC", "O"], ["B-PER", "I-PER", "O"]]
    score = entity_f1(gold, found)
    assert score.value == 0.5
    assert score.per_example.tolist() == [0, 1]
    assert score.on_rows(np.array([1, 1])) == 1
    assert tag_accuracy(gold, found).value == 0.8


@given(st.lists(st.tuples(sentences, st.randoms(use_true_random=False)), min_size=1, max_size=5))
def test_entity_f1_counts_equal_spans(drawn) -> None:
    """Against sets of spans: twice what both have, over what either has."""
    gold = [tags for tags, _ in drawn]
    found = [[tag if draw.random() < 0.6 else draw.choice(TAGS) for tag in tags] for tags, draw in drawn]
    both = sum(len(set(entity_spans(a)) & set(entity_spans(b))) for a, b in zip(gold, found, strict=True))
    either = sum(len(entity_spans(a)) + len(entity_spans(b)) for a, b in zip(gold, found, strict=True))
    assert entity_f1(gold, found).value == pytest.approx(2 * both / either if either else 1)


def test_wrong_type_or_border_is_not_found() -> None:
    gold = [["B-A", "I-A", "O", "B-B"]]
    assert entity_f1(gold, [["B-A", "O", "O", "B-B"]]).value == 0.5
    assert entity_f1(gold, [["B-B", "I-B", "O", "B-B"]]).value == 0.5
    assert entity_f1(gold, [["S-A", "E-A", "O", "S-B"]]).value == pytest.approx(2 / 5)  # three found


def test_a_word_is_an_example_of_its_sentence() -> None:
    score = tag_accuracy([["N", "V"], ["N", "V", "D", "N"]], [["N", "N"], ["N", "V", "D", "N"]])
    assert score.per_example.tolist() == [0.5, 1]
    assert score.value == pytest.approx(5 / 6)


@given(st.lists(st.tuples(sentences, st.randoms(use_true_random=False)), min_size=1, max_size=5))
def test_macro_f1_is_that_of_all_words(drawn) -> None:
    """The same as macro F1 of labels with each word as an example. Selections have whole sentences."""
    gold = [tags for tags, _ in drawn]
    found = [[tag if draw.random() < 0.6 else draw.choice(TAGS) for tag in tags] for tags, draw in drawn]
    score = tag_macro_f1(gold, found)
    for rows in (range(len(gold)), (0, 0), (len(gold) - 1,)):
        sides = [[tag for row in rows for tag in side[row]] for side in (gold, found)]
        assert score.on_rows(np.array(rows)) == pytest.approx(macro_f1(*sides).value if sides[0] else 1)
    right = [[a == b for a, b in zip(*pair, strict=True)] for pair in zip(gold, found, strict=True)]
    assert score.per_example == pytest.approx([np.mean(words or [0]) for words in right])


def test_which_tags_mark_entities() -> None:
    assert are_entity_tags(["O", "B-PER", "I-PER"])
    assert are_entity_tags(["S-PER"])
    for tags in ([], ["O"], ["NOUN", "VERB"], ["O", "B-PER", "NOUN"], ["B-"]):
        assert not are_entity_tags(tags)
    with pytest.raises(
        UserError, match="the tag 'NOUN' marks no entity: use O, or B-, I-, E- or S- and a type"
    ):
        entity_f1([["NOUN"]], [["O"]])


def test_sentences_of_unequal_length_are_refused() -> None:
    for score in (tag_accuracy, tag_macro_f1, entity_f1):
        with pytest.raises(ValueError, match="sentence 2 has 2 words and 1 tags"):
            score([["O"], ["O", "O"]], [["O"], ["O"]])
