"""Bags of n-grams: TF-IDF by its definition, with the vocabulary of training texts."""

import math
from collections import Counter

import pytest
import torch

from foveal.encoders.ngrams import NgramEncoder
from foveal.ops.ngrams import UNUSED, ngram_codes, ngram_vocabulary, term_weights

TEXTS = ["abcab", "abd", "cccc", "ab"]


def tokens(text: str) -> torch.Tensor:
    return torch.tensor([ord(character) - ord("a") for character in text])


def grams(text: str, longest: int) -> list[str]:
    return [text[i : i + n] for n in range(1, longest + 1) for i in range(len(text) - n + 1)]


def padded(texts: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.tensor([len(text) for text in texts])
    values = torch.full((len(texts), int(lengths.max()) + 2), 3)
    for row, text in enumerate(texts):
        values[row, : len(text)] = tokens(text)
    return values, lengths


def test_equal_ngrams_have_equal_codes_and_others_do_not() -> None:
    codes = {gram: int(ngram_codes(tokens(gram), len(gram))[-1]) for gram in grams("abcabefghabdc", 5)}
    assert len(set(codes.values())) == len(codes)
    listed = ngram_codes(tokens("abcab"), 3).tolist()
    assert listed == [codes[gram] for gram in grams("abcab", 3)]


def test_the_weights_are_tf_idf() -> None:
    encoder = NgramEncoder(10, 50, 3)
    encoder.fit(*padded(TEXTS))
    vectors = encoder(*padded(TEXTS))[0].summary
    having = Counter(gram for text in TEXTS for gram in set(grams(text, 3)))
    known = {gram for gram, count in having.items() if count >= 2}
    assert known == {"a", "b", "c", "ab"}
    for text, vector in zip(TEXTS, vectors, strict=True):
        counts = Counter(gram for gram in grams(text, 3) if gram in known)
        weights = {g: (1 + math.log(c)) * (1 + math.log(5 / (1 + having[g]))) for g, c in counts.items()}
        norm = math.sqrt(sum(weight**2 for weight in weights.values()))
        expected = torch.zeros(50)
        for gram, weight in weights.items():
            code = ngram_codes(tokens(gram), len(gram))[-1]
            expected[torch.searchsorted(encoder.codes, code)] = weight / norm
        torch.testing.assert_close(vector, expected)


def test_the_most_frequent_are_kept() -> None:
    codes, idf = ngram_vocabulary([ngram_codes(tokens(text), 1) for text in TEXTS], 2)
    kept = {int(ngram_codes(tokens(letter), 1)[0]) for letter in "ab"}
    assert {*codes.tolist()} == kept
    assert bool((codes.diff() > 0).all())
    assert len(idf) == 2


@pytest.mark.parametrize("text", ["z", ""])
def test_a_text_without_known_ngrams_is_zero(text: str) -> None:
    codes, idf = ngram_vocabulary([ngram_codes(tokens(each), 2) for each in TEXTS], 8)
    assert UNUSED in codes.tolist()
    assert bool(
        term_weights(ngram_codes(torch.tensor([25] * len(text), dtype=torch.int64), 2), codes, idf)
        .eq(0)
        .all()
    )
