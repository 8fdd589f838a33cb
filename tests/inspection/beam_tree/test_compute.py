"""The tree against trying everything: sums of log-probabilities, the best, and what was pruned."""

import itertools

import pytest

from foveal.data.text.tokenizers import CharacterTokenizer
from foveal.generation.beam_search import length_penalty
from foveal.inspection.beam_tree.compute import BeamTree, beam_tree
from foveal.inspection.text_writer import TextWriter
from tests.support.decoder_heads import SmallRecurrence, next_log_probabilities

SIZE, LIMIT, END = 4, 3, 0
PROMPT = (1, 2)


def tree_of(beam: int, alpha: float = 0.6, pruned: int = 3) -> tuple[SmallRecurrence, BeamTree]:
    head = SmallRecurrence(SIZE)
    writer = TextWriter(head, PROMPT, LIMIT, CharacterTokenizer("abcd"), end_tokens=frozenset({END}))
    return head, beam_tree(writer, beam, alpha, pruned)


def log_probability(head: SmallRecurrence, tokens: tuple[int, ...]) -> float:
    return sum(
        float(next_log_probabilities(head, [*PROMPT, *tokens[:t]])[token]) for t, token in enumerate(tokens)
    )


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_a_beam_of_everything_has_the_true_best(alpha: float) -> None:
    head, tree = tree_of(SIZE**LIMIT, alpha)
    texts = [
        tokens
        for n in range(1, LIMIT + 1)
        for tokens in itertools.product(range(SIZE), repeat=n)
        if END not in tokens[:-1] and (tokens[-1] == END or n == LIMIT)
    ]
    scores = {tokens: log_probability(head, tokens) / length_penalty(len(tokens), alpha) for tokens in texts}
    best = max(number for number, one in enumerate(tree.hypotheses) if one.is_best)
    assert tree.tokens(best) == max(texts, key=lambda tokens: scores[tokens])
    assert tree.hypotheses[best].score == pytest.approx(max(scores.values()), abs=1e-10)
    assert not any(one.fate == "pruned" for one in tree.hypotheses)
    finished = {tree.tokens(n): one for n, one in enumerate(tree.hypotheses) if one.fate == "finished"}
    assert finished.keys() <= {tokens for tokens in texts if tokens[-1] == END}, "the search may end early"


@pytest.mark.parametrize("beam", [1, 2, 3])
def test_scores_are_sums_and_pruned_ones_are_below_kept_ones(beam: int) -> None:
    head, tree = tree_of(beam)
    for number, one in enumerate(tree.hypotheses):
        tokens = tree.tokens(number)
        assert len(tokens) == one.step
        assert one.log_probability == pytest.approx(log_probability(head, tokens), abs=1e-10)
        assert one.score == pytest.approx(one.log_probability / ((5 + one.step) / 6) ** 0.6, abs=1e-10)
        assert (one.fate == "finished") == (tokens[-1] == END and one.slot < beam)
    for step in range(1, 1 + max(one.step for one in tree.hypotheses)):
        at = [one for one in tree.hypotheses if one.step == step]
        kept = [one.log_probability for one in at if one.fate != "pruned"]
        pruned = [one.log_probability for one in at if one.fate == "pruned"]
        assert max(pruned, default=-9e9) <= min(kept)
        assert pruned == sorted(pruned, reverse=True)
        assert len({one.slot for one in at}) == len(at), "each has its own place"
    best = [one for one in tree.hypotheses if one.is_best]
    assert [one.step for one in best] == [*range(1, len(best) + 1)]
    parents = [one.parent for one in best]
    assert parents[0] is None
    assert [tree.hypotheses[parent] for parent in parents[1:] if parent is not None] == best[:-1]


def test_the_likeliest_of_the_pruned_are_shown() -> None:
    """All continuations of a step are kept or pruned."""
    _, tree = tree_of(2, pruned=100)
    first = [one for one in tree.hypotheses if one.step == 1]
    assert len(first) == SIZE
    assert sum(one.fate == "pruned" for one in first) == SIZE - 2
