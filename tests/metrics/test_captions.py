"""CIDEr-D against its equation written out, figures of pycocoevalcap, and cases done by hand."""

import math
import random

import numpy as np
import pytest

from foveal.core.errors import UserError
from foveal.metrics.captions import caption_words, cider
from foveal.metrics.intervals import bootstrap_interval
from foveal.metrics.report import make_report

Tokens = list[str]
ALPHABETS = (Tokens("abcd"), Tokens("efgh"), Tokens("ijkl"))
"""Three captions without a common word: every n-gram is in one example of three."""
GREEK = Tokens("αβγδ")
PYCOCOEVALCAP: dict[int, tuple[float, list[float]]] = {
    1: (0.0, [0.0]),
    2: (0.378578931, [0.0, 0.757157862]),
    200: (
        0.654321893,
        [
            10.0,
            0.321865801,
            0.078336596,
            0.523105722,
            3.097152742,
            0.0,
            0.953600352,
            0.036195135,
            0.641869644,
            0.0,
        ],
    ),
}
"""What pycocoevalcap 1.2 gave for so many `examples`, seeded with their number: the score of all, and of
every 20th where they are many."""


def examples(count: int, seed: int = 0) -> tuple[list[list[Tokens]], list[Tokens]]:
    """One to five references each, of few words that come again; outputs near the first one, or empty."""
    draw = random.Random(seed)
    vocabulary = ["a", "a", "a", "the", "the", "cat", "dog", "on", "mat", "red", "runs", ".", "very"]
    references = [
        [draw.choices(vocabulary, k=draw.randrange(1, 12)) for _ in range(draw.randrange(1, 6))]
        for _ in range(count)
    ]
    outputs = [
        [draw.choice([word, word, draw.choice(vocabulary), "unseen"]) for word in several[0]]
        * draw.choice([0, 1, 1, 1, 2])
        for several in references
    ]
    return references, outputs


def written_out(references: list[list[Tokens]], outputs: list[Tokens]) -> list[float]:
    """Section 4 word by word: a vector over every n-gram there is, one entry after the other."""

    def grams(tokens: Tokens, n: int) -> list[str]:
        return [
            " ".join(tokens[start : start + n]) for start in range(len(tokens)) if start + n <= len(tokens)
        ]

    scores = []
    for output, several in zip(outputs, references, strict=True):
        orders = []
        for n in (1, 2, 3, 4):
            of_all = {gram for some in [outputs, *references] for one in some for gram in grams(one, n)}
            documents = {
                gram: sum(any(gram in grams(one, n) for one in some) for some in references)
                for gram in of_all
            }
            idf = {gram: math.log(len(references) / max(1, documents[gram])) for gram in of_all}
            similarities = []
            for reference in several:
                ours, theirs = (
                    np.array([grams(one, n).count(gram) * idf[gram] for gram in sorted(of_all)])
                    for one in (output, reference)
                )
                norms = np.linalg.norm(ours) * np.linalg.norm(theirs)
                cosine = (np.minimum(ours, theirs) * theirs).sum() / norms if norms > 0 else 0.0
                apart = len(output) - len(reference)
                similarities.append(math.exp(-apart * apart / 72) * cosine)
            orders.append(10 * sum(similarities) / len(several))
        scores.append(sum(orders) / 4)
    return scores


@pytest.mark.parametrize("count", [2, 3, 25])
def test_the_equation_written_out(count: int) -> None:
    references, outputs = examples(count, seed=count)
    expected = written_out(references, outputs)
    score = cider(references, outputs)
    assert score.per_example == pytest.approx(expected, abs=1e-10)
    assert score.value == pytest.approx(np.mean(expected), abs=1e-10)
    assert len(set(expected)) > count / 3  # not all zeros


@pytest.mark.parametrize("count", PYCOCOEVALCAP)
def test_as_pycocoevalcap_was(count: int) -> None:
    value, some = PYCOCOEVALCAP[count]
    score = cider(*examples(count, seed=count))
    assert score.value == pytest.approx(value, abs=1e-6)
    assert score.per_example[:: 20 if count == 200 else 1] == pytest.approx(some, abs=1e-6)


@pytest.mark.parametrize("count", PYCOCOEVALCAP)
def test_as_pycocoevalcap_is(count: int) -> None:
    peer = pytest.importorskip("pycocoevalcap.cider.cider", reason="pycocoevalcap is not installed")
    references, outputs = examples(count, seed=count)
    known = {number: [" ".join(one) for one in several] for number, several in enumerate(references)}
    value, each = peer.Cider().compute_score(known, {n: [" ".join(one)] for n, one in enumerate(outputs)})
    score = cider(references, outputs)
    assert score.value == pytest.approx(value, abs=1e-6)
    assert score.per_example == pytest.approx(each, abs=1e-6)


def first_score(output: Tokens, *references: Tokens) -> float:
    """Of an output with its references, beside two other examples that have none of its words."""
    return cider([references, *([one] for one in ALPHABETS[1:])], [output, *ALPHABETS[1:]]).per_example[0]


def test_identical_outputs() -> None:
    """10 with four words or more; each order that a shorter caption is without takes a quarter."""
    assert first_score(ALPHABETS[0], ALPHABETS[0]) == pytest.approx(10)
    for count in range(4):
        assert first_score(GREEK[:count], GREEK[:count]) == pytest.approx(10 * count / 4)


def test_one_word_of_four_wrong() -> None:
    """All n-grams weigh log 3, the one never seen too: the cosines are shares, 3/4, 2/3, 1/2 and 0."""
    assert first_score(Tokens("abcx"), ALPHABETS[0]) == pytest.approx(10 * (3 / 4 + 2 / 3 + 1 / 2) / 4)


def test_a_shorter_output() -> None:
    """Two of four words, one of three pairs: cosines 1/√2 and 1/√3, and 2 words too few."""
    expected = 10 * math.exp(-4 / 72) * (2**-0.5 + 3**-0.5) / 4
    assert first_score(Tokens("ab"), ALPHABETS[0]) == pytest.approx(expected)


def test_repeating_a_good_word_does_not_pay() -> None:
    """Four times a right word: clipped to once, over norms of 4 and 2."""
    assert first_score(Tokens("aaaa"), ALPHABETS[0]) == pytest.approx(10 * (1 / 8) / 4)


def test_several_references_are_averaged() -> None:
    assert first_score(ALPHABETS[0], ALPHABETS[0], GREEK) == pytest.approx(5)


def test_a_word_of_every_example_has_no_weight() -> None:
    references = [[["the", *one]] for one in ALPHABETS]
    several = cider(references, [["the"], ["the", "the"], ["the", *ALPHABETS[2]]])
    assert several.per_example[:2].tolist() == [0, 0]
    assert several.per_example[2] == pytest.approx(10)


def test_the_references_of_one_example_count_as_one_document() -> None:
    """`a` in three references of the first of two examples: seen in one example, its weight is log 2."""
    references = [[["a", "b"], ["a", "c"], ["a", "d"]], [["e", "f"]]]
    each = cider(references, [["a", "b"], ["e", "f"]]).per_example
    assert each[0] == pytest.approx(10 * (1 + 2 * (1 / 2) + 1) / 3 / 4)


def test_nothing_written_or_nothing_known_is_0() -> None:
    assert first_score([], ALPHABETS[0]) == 0
    assert first_score(ALPHABETS[0], []) == 0
    assert cider([[ALPHABETS[0]]], [ALPHABETS[0]]).value == 0  # a single example: all weights are log 1


def test_an_interval_draws_examples_and_keeps_what_is_rare() -> None:
    """A selection is the mean of its examples under the whole set's weights, not a smaller set's score."""
    references, outputs = examples(30)
    score = cider(references, outputs)
    rows = np.array([4, 4, 1, 0])
    assert score.on_rows(rows) == pytest.approx(score.per_example[rows].mean())
    alone = cider([references[row] for row in rows], [outputs[row] for row in rows])
    assert abs(alone.value - score.on_rows(rows)) > 0.01
    low, high = bootstrap_interval(score)
    assert low < score.value < high


def test_a_report_says_how_it_was_computed() -> None:
    references, outputs = examples(30)
    texts = [" ".join(output) for output in outputs]
    first = [" ".join(several[0]) for several in references]
    report = make_report([cider(references, outputs)], [], texts, first, texts).to_json()
    assert report["cider_signature"] == "nrefs:var|n:4|sigma:6|documents:30"
    low, high = report["cider_interval"]
    assert low < report["cider"] < high
    assert cider([[one] for one in ALPHABETS], ALPHABETS).signature.startswith("nrefs:1|")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A man's T-shirt.", ["a", "man", "s", "t", "shirt"]),
        ("  Zwei Hunde, (braun)\n", ["zwei", "hunde", "braun"]),
        ("3 cats_and 1 dog!", ["3", "cats", "and", "1", "dog"]),
        ("एक बिल्ली", ["एक", "बिल्ली"]),
        ("cafe\u0301", ["cafe\u0301"]),
        ("... !?", []),
        ("", []),
    ],
)
def test_words(text: str, expected: Tokens) -> None:
    assert caption_words(text) == expected


def test_what_cannot_be_scored() -> None:
    with pytest.raises(UserError, match="there are no examples to score"):
        cider([], [])
    with pytest.raises(ValueError, match="1 outputs for 2 references"):
        cider([[["a"]], [["b"]]], [["a"]])
    with pytest.raises(ValueError, match="an output has no reference"):
        cider([[["a"]], []], [["a"], ["b"]])
