"""Beam search against a slow one, against greedy decoding, and against trying everything."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from foveal.core.errors import RunFailed, UserError
from foveal.core.memory import Memory
from foveal.generation.beam_search import Hypothesis, beam_search, length_penalty
from foveal.generation.decoding_loop import generate
from foveal.generation.sampling import GREEDY
from tests.support.decoder_heads import (
    HEADS,
    RecordingHead,
    ScriptedHead,
    SmallRecurrence,
    V,
    next_log_probabilities,
)

PROMPTS = [[1, 2, 3, 1], [4], [0, 2]]
ALPHAS = [0.0, 0.6, 1.0, 3.0]

with_any_penalty = pytest.mark.parametrize("alpha", ALPHAS)
head_of_any_kind = pytest.mark.parametrize("make", HEADS.values(), ids=HEADS.keys())


def penalty(n: int, alpha: float) -> float:
    return ((5 + n) / 6) ** alpha


def everything(
    head: nn.Module, prompt: list[int], max_new_tokens: int, alpha: float, end_tokens: set[int], V: int
) -> list[tuple[float, tuple[int, ...]]]:
    """Every text that ends by itself or at the limit: (score, tokens), the best first."""
    found = []

    def grow(tokens: tuple[int, ...], total: float) -> None:
        if (tokens and tokens[-1] in end_tokens) or len(tokens) == max_new_tokens:
            found.append((total / penalty(len(tokens), alpha), tokens))
            return
        for token, log_probability in enumerate(next_log_probabilities(head, [*prompt, *tokens]).tolist()):
            grow((*tokens, token), total + log_probability)

    grow((), 0.0)
    assert (
        len(found)
        == len(end_tokens) * sum((V - len(end_tokens)) ** n for n in range(max_new_tokens))
        + (V - len(end_tokens)) ** max_new_tokens
    )
    return sorted(found, reverse=True)


def slow_beam(
    head: nn.Module, prompt: list[int], max_new_tokens: int, beam: int, alpha: float, end_tokens: set[int]
) -> list[tuple[float, tuple[int, ...]]]:
    """One prompt, lists only, no state, no early end."""
    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    ended: list[tuple[tuple[int, ...], float]] = []
    for _ in range(max_new_tokens):
        grown = [
            ((*tokens, token), total + log_probability)
            for tokens, total in live
            for token, log_probability in enumerate(next_log_probabilities(head, [*prompt, *tokens]).tolist())
        ]
        grown = sorted(grown, key=lambda path: -path[1])[: beam - len(ended)]
        ended += [path for path in grown if path[0][-1] in end_tokens]
        live = [path for path in grown if path[0][-1] not in end_tokens]
    return sorted(((total / penalty(len(t), alpha), t) for t, total in ended + live), reverse=True)


def agree(mine: list[Hypothesis], other: list[tuple[float, tuple[int, ...]]]) -> None:
    assert [hypothesis.tokens for hypothesis in mine] == [tokens for _, tokens in other]
    assert [hypothesis.score for hypothesis in mine] == pytest.approx(
        [score for score, _ in other], abs=1e-10
    )


@with_any_penalty
@pytest.mark.parametrize("end_tokens", [{0}, {1, 2}, set()])
def test_a_beam_that_holds_everything_finds_the_best(alpha: float, end_tokens: set[int]) -> None:
    size, limit = 4, 4
    head = SmallRecurrence(size)
    best = size**limit
    found = beam_search(head, [[1, 2], [3]], limit, beam=best, best=best, alpha=alpha, end_tokens=end_tokens)
    for prompt, hypotheses in zip([[1, 2], [3]], found, strict=True):
        agree(hypotheses, everything(head, prompt, limit, alpha, end_tokens, size))
        for hypothesis in hypotheses:
            assert hypothesis.finish_reason == ("end" if hypothesis.tokens[-1] in end_tokens else "limit")
            unpenalised = hypothesis.score * penalty(len(hypothesis.tokens), alpha)
            assert hypothesis.log_probability == pytest.approx(unpenalised)


def test_the_penalty_changes_which_is_best() -> None:
    """So the test above can see alpha."""
    head = SmallRecurrence(4)
    lengths = [
        len(beam_search(head, [[1, 2]], 4, beam=256, alpha=alpha, end_tokens={0})[0][0].tokens)
        for alpha in ALPHAS
    ]
    assert lengths[0] < lengths[-1]


@head_of_any_kind
@with_any_penalty
def test_a_beam_of_one_is_greedy(make: Callable[[], nn.Module], alpha: float) -> None:
    for end in ({3}, {0, 5}, set()):
        head: Any = make()
        greedy: dict[int, list[int]] = {}
        totals = [0.0] * len(PROMPTS)
        for row, token, chance, _ in generate(head, PROMPTS, [""] * 3, 10, GREEDY, end_tokens=end):
            greedy.setdefault(row, []).append(token)
            totals[row] += chance
        found = beam_search(head, PROMPTS, 10, beam=1, alpha=alpha, end_tokens=end)
        assert [list(one.tokens) for (one,) in found] == [greedy[row] for row in range(3)]
        assert [one.log_probability for (one,) in found] == pytest.approx(totals, abs=1e-10)


def test_a_beam_of_one_breaks_ties_as_greedy_does() -> None:
    head = ScriptedHead(torch.tensor([[0.0, 1.0, 1.0, 1.0]]))
    assert beam_search(head, [[0]], 3, beam=1)[0][0].tokens == (1, 1, 1)


@head_of_any_kind
@pytest.mark.parametrize(("beam", "alpha"), [(2, 0.0), (3, 0.6), (5, 2.0)])
def test_a_beam_in_a_batch_is_the_slow_beam_alone(
    make: Callable[[], nn.Module], beam: int, alpha: float
) -> None:
    head: Any = make()
    found = beam_search(head, PROMPTS, 7, beam=beam, best=beam, alpha=alpha, end_tokens={2, 6}, chunk=2)
    for prompt, hypotheses in zip(PROMPTS, found, strict=True):
        agree(hypotheses, slow_beam(head, prompt, 7, beam, alpha, {2, 6}))


def test_many_random_heads() -> None:
    """Different ends in different rows: prompts leave the batch at different steps."""
    for seed, (beam, best) in itertools.product(range(12), [(2, 1), (4, 2), (4, 4)]):
        torch.manual_seed(seed)
        head = SmallRecurrence(scale=4.0)
        found = beam_search(head, PROMPTS, 9, beam=beam, best=best, alpha=0.8, end_tokens={seed % V, 3})
        for prompt, hypotheses in zip(PROMPTS, found, strict=True):
            agree(hypotheses, slow_beam(head, prompt, 9, beam, 0.8, {seed % V, 3})[:best])


def test_an_ended_hypothesis_keeps_its_place() -> None:
    """Token 0 ends. At the second step two live paths are likelier than the ended one; it stays and wins."""
    first, later = torch.tensor([0.2, 0.79, 0.01]).log(), torch.tensor([1e-9, 0.5, 0.5]).log()
    head = ScriptedHead(torch.stack([first, first, later]))
    found = beam_search(head, [[1]], 6, beam=2, best=2, end_tokens={0})[0]
    assert [hypothesis.tokens for hypothesis in found] == [(0,), (1, 1, 1, 1, 1, 1)]
    assert found[0].finish_reason == "end"
    assert found[0].log_probability == pytest.approx(math.log(0.2))


def test_an_open_hypothesis_is_scored_at_the_limit() -> None:
    head = ScriptedHead(torch.tensor([[0.5, 0.5]]).log())
    (found,) = beam_search(head, [[0]], 4, beam=1, alpha=0.7)[0]
    assert found.score == pytest.approx(4 * math.log(0.5) / penalty(4, 0.7))
    assert length_penalty(1, 0.7) == 1


def test_it_ends_early_only_if_nothing_can_win() -> None:
    """Token 0 ends the first text at -0.1; the other path then costs 0.5 a step."""

    def calls(alpha: float, best: int = 1) -> tuple[int, tuple[int, ...]]:
        first = torch.tensor([-0.1, math.log(1 - math.exp(-0.1))])
        later = torch.tensor([math.log(1 - math.exp(-0.5)), -0.5])
        head = RecordingHead(ScriptedHead(torch.stack([first, first, later])))
        found = beam_search(head, [[0]], 50, beam=2, best=best, alpha=alpha, end_tokens={0})
        return len(head.calls), found[0][0].tokens

    # The live path starts at -2.35. Its best possible scores at the limit are -2.35, and -0.26 with a penalty
    # of 55 / 6: behind -0.1 at once. With (55 / 6)^2 = 84 it could win until it has lost 8.4, 13 steps on.
    assert calls(0.0) == (1, (0,))
    assert calls(1.0) == (1, (0,))
    assert calls(2.0) == (14, (0,))
    assert calls(0.0, best=2)[0] == 50, "the second best is open to the end"


def test_the_second_best_is_awaited_too() -> None:
    """After two steps (0,) at 0.6 and (1, 0) at 0.075 have ended, but (1, 1) at 0.21 may still be second."""
    first, later = torch.tensor([0.6, 0.3, 0.1]).log(), torch.tensor([0.25, 0.7, 0.05]).log()
    head = ScriptedHead(torch.stack([first, first, later]))
    found = beam_search(head, [[1]], 4, beam=3, best=2, end_tokens={0})[0]
    assert [hypothesis.tokens for hypothesis in found] == [(0,), (1, 1, 1, 1)]


def test_fewer_than_wanted_if_no_more_exist() -> None:
    head = ScriptedHead(torch.tensor([[0.5, 0.25, 0.25]]).log())
    found = beam_search(head, [[0]], 2, beam=20, best=20, end_tokens={0})[0]
    assert sorted(hypothesis.tokens for hypothesis in found) == [
        (0,), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2),
    ]  # fmt: skip


def test_impossible_tokens_are_no_hypotheses() -> None:
    head = ScriptedHead(torch.tensor([[-math.inf, 0.0, -math.inf]]))
    found = beam_search(head, [[1]], 3, beam=4, best=4, end_tokens={0})[0]
    assert [hypothesis.tokens for hypothesis in found] == [(1, 1, 1)]


def test_a_memory_goes_with_its_prompt() -> None:
    head = SmallRecurrence()
    summary = torch.randn(2, 8, dtype=torch.float64)

    def memory(*which: int) -> Memory:
        picked = summary[list(which)]
        return Memory(picked[:, None], torch.ones(len(which), 1, dtype=torch.bool), picked)

    both = beam_search(head, [[1, 2], [1]], 6, beam=3, best=3, memory=memory(0, 1))
    alone = [
        beam_search(head, [p], 6, beam=3, best=3, memory=memory(i))[0] for i, p in enumerate([[1, 2], [1]])
    ]
    for one, other in zip(both, alone, strict=True):
        agree(one, [(hypothesis.score, hypothesis.tokens) for hypothesis in other])


def test_a_step_costs_the_same_however_long_the_text() -> None:
    head = RecordingHead(SmallRecurrence())
    beam_search(head, PROMPTS, 100, beam=4)
    assert head.calls == [((3, 4), 24)] + [((12, 1), 96)] * 99


def test_what_can_be_mended() -> None:
    for wrong in ({"beam": 0}, {"beam": 2, "best": 3}, {"beam": 2, "best": 0}, {"beam": 1, "alpha": -1.0}):
        with pytest.raises(UserError):
            beam_search(SmallRecurrence(), [[1]], 3, **wrong)
    with pytest.raises(UserError):
        beam_search(SmallRecurrence(), [[1]], 0, beam=1)
    with pytest.raises(RunFailed, match="not finite"):
        beam_search(ScriptedHead(torch.tensor([[0.0, math.nan]])), [[1]], 3, beam=2)


def test_each_prompt_may_have_a_limit_of_its_own() -> None:
    """And writes what it would alone."""
    head, limits = SmallRecurrence(), [3, 9, 5]
    found = beam_search(head, PROMPTS, limits, beam=3, best=2, alpha=0.6, end_tokens={2})
    for prompt, limit, hypotheses in zip(PROMPTS, limits, found, strict=True):
        (alone,) = beam_search(head, [prompt], limit, beam=3, best=2, alpha=0.6, end_tokens={2})
        assert [one.tokens for one in hypotheses] == [one.tokens for one in alone]
        assert [one.finish_reason for one in hypotheses] == [one.finish_reason for one in alone]
        assert max(len(hypothesis.tokens) for hypothesis in hypotheses) <= limit
    with pytest.raises(UserError, match="all must be at least 1"):
        beam_search(head, PROMPTS, [3, 0, 5], beam=1)


def test_only_doubtful_hypotheses_end_before_the_limit() -> None:
    """Those of an untrained model, which never ends by itself."""
    untrained, sure = (SmallRecurrence(scale=scale) for scale in (0.01, 50.0))
    for head, lengths in ((untrained, [12, 20]), (sure, [60, 60])):
        found = beam_search(head, [[1], [4]], 60, beam=3, doubtful_limits=[12, 20])
        assert [len(hypotheses[0].tokens) for hypotheses in found] == lengths
    ends = ScriptedHead.saying([3, 5, 2], V)
    (one,) = beam_search(ends, [[1]], 60, beam=3, end_tokens={2}, doubtful_limits=[2])[0]
    assert one.tokens == (3, 5, 2)
