"""Streams of text are evaluated in slots, which ranks share: each row once, with the bits of one process."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foveal.core.signals import SignalHandler
from foveal.data.text.token_batches import TokenEvalBatches
from foveal.distributed.world import ONE_PROCESS, World
from foveal.training.agreement import Agreement
from foveal.training.evaluate import evaluate
from tests.support.ranks import run_ranks
from tests.support.short_trainings import ALL_KINDS, DEEP_KINDS

ROWS, CONTEXT = 7, 5
TOKENS = ROWS * 3 * CONTEXT + 4
"""So a chunk of one token ends the first or last rows, and the others have nothing in it."""
KINDS = ("learned-start", "stream-lstm", "stream-mamba", "stream-conv", "deep-attention", "experts")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def scores(
    kind: str, slots: int, world: World = ONE_PROCESS, count: int = TOKENS, dtype: torch.dtype = torch.float64
) -> tuple[dict[str, float], int]:
    """Return the scores of a text, and the number of its tokens that this process computes."""
    torch.manual_seed(0)
    session = (ALL_KINDS | DEEP_KINDS)[kind]()
    session.task.model.to(dtype)
    seen = 0

    class Counted:
        """The objective, which counts the tokens."""

        weights, start, preview = (
            session.objective.weights,
            session.objective.start,
            session.objective.preview,
        )

        def __call__(self, batch: Any, carry: Any) -> Any:
            nonlocal seen
            seen += batch.tokens
            return session.objective(batch, carry)

    tokens = np.random.default_rng(0).integers(3, 9, count)
    batches = TokenEvalBatches(tokens, ROWS, CONTEXT)
    together = Agreement(world, SignalHandler())
    return evaluate(session.task.model, Counted(), batches, together=together, slots=slots), seen


def scores_of_rank(world: World, kind: str, slots: int, folder: Path) -> tuple[dict[str, float], int]:
    path = folder / str(world.rank)
    path.mkdir(parents=True)
    os.chdir(path)
    return scores(kind, slots, world, dtype=torch.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_slots_are_the_whole_batch(kind: str) -> None:
    whole, tokens = scores(kind, 1)
    assert tokens == TOKENS - 1
    for slots in (2, 3, 7):
        cut, computed = scores(kind, slots)
        assert computed == tokens
        assert cut == pytest.approx(whole, rel=1e-12)


def test_a_text_of_fewer_streams_than_slots_is_not_cut() -> None:
    assert scores("stream-lstm", 8) == scores("stream-lstm", 1)
    assert scores("stream-lstm", 2, count=CONTEXT) == scores("stream-lstm", 1, count=CONTEXT)


@pytest.mark.parametrize("kind", ["stream-lstm", pytest.param("deep-attention", marks=pytest.mark.slow)])
def test_ranks_share_the_slots(kind: str, tmp_path: Path) -> None:
    expected, tokens = scores(kind, 4, dtype=torch.float32)
    shared = run_ranks(2, scores_of_rank, kind, 4, tmp_path / "shared")
    assert [score for score, _ in shared] == [expected, expected]
    assert sum(computed for _, computed in shared) == tokens
    assert max(computed for _, computed in shared) < 0.6 * tokens
    alone = run_ranks(2, scores_of_rank, kind, 3, tmp_path / "alone")
    assert alone == [scores(kind, 3, dtype=torch.float32)] * 2
