"""The baseline of tagging against tags counted by hand."""

import pytest

from foveal.metrics.frequent_tags import FrequentTags

SENTENCES = [["the", "walk", "talked"], ["they", "walk", "walk"], ["The", "talking", "balked"]]
TAGS = [["DET", "NOUN", "VERB"], ["PRON", "VERB", "VERB"], ["DET", "NOUN", "ADJ"]]


def test_a_known_word_gets_its_most_frequent_tag() -> None:
    baseline = FrequentTags.fit(SENTENCES, TAGS)
    assert baseline.predict(["walk", "they", "The"]) == ["VERB", "PRON", "DET"]


@pytest.mark.parametrize(
    ("word", "tag"),
    [
        ("stalked", "VERB"),  # as talked
        ("Chalked", "ADJ"),  # `alked` of talked and balked: equally often, the first in the alphabet
        ("swing", "NOUN"),  # as talking
        ("THE", "DET"),  # as the and The
        ("cat", "VERB"),  # no known ending: the tag of most different words
        ("", "VERB"),
    ],
)
def test_an_unknown_word_gets_the_tag_of_its_longest_known_ending(word: str, tag: str) -> None:
    tags = [["DET", "NOUN", "VERB"], ["VERB", "VERB", "VERB"], ["DET", "NOUN", "ADJ"]]
    assert FrequentTags.fit(SENTENCES, tags).predict([word]) == [tag]


def test_a_frequent_word_does_not_decide_for_words_never_seen() -> None:
    baseline = FrequentTags.fit([["her"] * 9, ["baker", "maker"]], [["PRON"] * 9, ["NOUN"] * 2])
    assert baseline.predict(["her", "tiger"]) == ["PRON", "NOUN"]


def test_tags_are_a_matter_of_counts_not_of_order() -> None:
    baseline = FrequentTags.fit(SENTENCES[::-1], TAGS[::-1])
    assert baseline == FrequentTags.fit(SENTENCES, TAGS)


def test_nothing_to_count_is_an_error() -> None:
    with pytest.raises(ValueError, match="no words"):
        FrequentTags.fit([[]], [[]])
    with pytest.raises(ValueError, match="shorter"):
        FrequentTags.fit([["a", "b"]], [["X"]])
