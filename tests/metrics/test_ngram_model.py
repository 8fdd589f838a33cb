"""The n-gram model: the equation by a dictionary of counts, and probabilities that add up to 1."""

from collections import Counter

import pytest
import torch

from foveal.metrics.ngram_model import LONGEST_CONTEXT, ngram_log_probabilities


def expected_probability(
    train: list[int], context: list[int], token: int, vocabulary: int, longest: int
) -> float:
    """Return the probability of a token, by the equation."""
    probability = 1 / vocabulary
    for n in range(min(longest, len(context)) + 1):
        last = context[len(context) - n :]
        follow = Counter(train[i + n] for i in range(len(train) - n) if train[i : i + n] == last)
        if follow:
            c, d = sum(follow.values()), len(follow)
            probability = (follow[token] + d * probability) / (c + d)
    return probability


@pytest.mark.parametrize("vocabulary", [2, 4, 30])
def test_equation(vocabulary: int) -> None:
    train, held_out = torch.randint(vocabulary, (80,)), torch.randint(vocabulary, (25,))
    results = ngram_log_probabilities(train, held_out, vocabulary)
    assert len(results) == LONGEST_CONTEXT + 1
    text, known = held_out.tolist(), train.tolist()
    for longest, result in enumerate(results):
        for position in range(1, len(text)):
            expected = expected_probability(known, text[:position], text[position], vocabulary, longest)
            assert float(result[position - 1].exp()) == pytest.approx(expected), position


def test_probabilities_of_all_tokens_add_up_to_1() -> None:
    train, context = torch.randint(5, (200,)), torch.randint(5, (9,))
    rows = [torch.cat([context, torch.tensor([token])]) for token in range(5)]
    total = sum(float(ngram_log_probabilities(train, row, 5)[-1][-1].exp()) for row in rows)
    assert total == pytest.approx(1)


@pytest.mark.parametrize("sizes", [(1, 2), (2, 2), (3, 40), (1, 40)])
def test_texts_shorter_than_the_contexts(sizes: tuple[int, int]) -> None:
    train, held_out = (torch.randint(3, (size,)) for size in sizes)
    for result in ngram_log_probabilities(train, held_out, 3):
        assert len(result) == len(held_out) - 1
        assert (result < 0).all()
        assert result.isfinite().all()
