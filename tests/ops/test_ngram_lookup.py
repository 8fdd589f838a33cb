"""N-gram lookup: sorted codes find what a dictionary of n-grams finds, and never look ahead."""

import pytest
import torch

from foveal.ops.ngram_lookup import NOTHING, ngram_followers, ngram_followers_reference, ngram_lengths


def test_lengths() -> None:
    assert ngram_lengths(24) == (2, 3, 4, 6, 8, 12, 16, 24)
    assert ngram_lengths(5) == (2, 3, 4)
    assert ngram_lengths(64)[-2:] == (48, 64)


def test_followers_of_a_word() -> None:
    a, b, c = 1, 2, 3
    text = [a, b, c, a, b, a, a, b]
    assert [row[0] for row in ngram_followers_reference(text, (2,))] == [0, 0, 0, 0, c, 0, 0, a]


@pytest.mark.parametrize("symbols", [1, 2, 5, 300])
@pytest.mark.parametrize("length", [1, 2, 7, 200])
def test_sorted_codes_find_what_a_dictionary_finds(symbols: int, length: int) -> None:
    lengths = ngram_lengths(12)
    text = torch.randint(1, symbols + 1, (3, length))
    text[torch.rand(text.shape) < 0.1] = NOTHING
    expected = [ngram_followers_reference(row, lengths) for row in text.tolist()]
    assert ngram_followers(text, lengths).tolist() == expected
    assert ngram_followers(text[1], lengths).tolist() == expected[1]


def test_followers_depend_on_the_text_so_far() -> None:
    text = torch.randint(1, 4, (100,))
    changed = text.clone()
    changed[60:] = torch.randint(1, 4, (40,))
    lengths = ngram_lengths(8)
    torch.testing.assert_close(ngram_followers(text, lengths)[:60], ngram_followers(changed, lengths)[:60])
