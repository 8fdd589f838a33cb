"""A step in slots equals a step on the whole batch, and has the same bits on any number of ranks."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.runtime import Precision
from foveal.data.core.batching import TokenBatch
from foveal.distributed.world import ONE_PROCESS, World
from foveal.training.slots import Slots, describe_slots
from tests.support.ranks import run_ranks
from tests.support.short_trainings import ALL_KINDS, MORE_KINDS, NOT_CUT, SLOTS, train_steps
from tests.support.untrained_runs import KINDS

LONG = {"hardest-rows"}
"""Kinds whose test takes half a minute."""
SAMPLED = {"hard-captioning"}
"""Their models draw, so slots differ from the whole batch."""
FLOAT32_LOGITS = ("masked-lm", "permutation-lm")
"""Kinds whose loss is computed in float32."""
OFTEN = ("stream-lstm", "batch-norm")
"""Kinds whose ranks are compared at every change: a carry, and a layer that reads the whole batch."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "kind",
    [
        *sorted(MORE_KINDS.keys() - LONG),
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in sorted(LONG | KINDS.keys() - NOT_CUT - SAMPLED)
        ),
    ],
)
def test_slots_are_the_whole_batch(kind: str) -> None:
    whole, weights = train_steps(kind, Slots(1), torch.float64)
    cut, after = train_steps(kind, Slots(SLOTS), torch.float64)
    for one, other in zip(whole, cut, strict=True):
        assert one.loss == pytest.approx(other.loss, rel=1e-6 if kind in FLOAT32_LOGITS else 1e-9)
        assert one.metrics == pytest.approx(other.metrics, abs=1e-6, rel=1e-6)
        assert one.gradient_norm == pytest.approx(other.gradient_norm, abs=1e-9, rel=1e-9)
    for name, weight in weights.items():
        assert torch.allclose(weight, after[name], atol=1e-8), name


@pytest.mark.parametrize("kind", sorted(NOT_CUT))
def test_rows_that_share_something_are_not_cut(kind: str) -> None:
    with pytest.raises(UserError, match="can't be cut into slots"):
        train_steps(kind, Slots(SLOTS), torch.float32)


def steps_of_rank(
    world: World, kind: str, precision: Precision, folder: Path
) -> tuple[list[Any], dict[str, Tensor]]:
    path = folder / str(world.rank)
    path.mkdir(parents=True)
    os.chdir(path)
    return train_steps(kind, Slots(SLOTS, world), torch.float32, precision)


@pytest.mark.parametrize(
    ("kind", "precision"),
    [
        *((kind, "float32") for kind in OFTEN),
        *(
            pytest.param(kind, precision, marks=pytest.mark.slow)
            for kind in sorted(ALL_KINDS.keys() - NOT_CUT)
            for precision in ("float32", "bfloat16")
            if (kind, precision) not in {(often, "float32") for often in OFTEN}
        ),
    ],
)
def test_any_number_of_ranks_has_the_same_bits(kind: str, precision: Precision, folder: Path) -> None:
    torch.set_num_threads(1)
    results, weights = steps_of_rank(ONE_PROCESS, kind, precision, folder / "one")
    for size in (2, 4):
        for others, after in run_ranks(size, steps_of_rank, kind, precision, folder / str(size)):
            assert others == results
            for name, weight in weights.items():
                assert torch.equal(weight, after[name]), name


def test_noise_differs_from_slot_to_slot() -> None:
    """With one seed for all, rows in the same place of two slots would drop the same units."""
    seeds = {Slots(SLOTS).seed(slot) for slot in range(SLOTS)}
    assert len(seeds) == SLOTS
    assert Slots(1).seed(0) == (), "a whole batch has the noise that it had before there were slots"


def test_a_batch_of_fewer_rows_than_slots() -> None:
    """Some slots have no rows, which is fine unless a layer reads the whole batch."""
    whole, weights = train_steps("translation", Slots(1), torch.float64)
    cut, after = train_steps("translation", Slots(64), torch.float64)
    assert [one.loss for one in whole] == pytest.approx([other.loss for other in cut], abs=1e-9)
    assert all(torch.allclose(weight, after[name], atol=1e-8) for name, weight in weights.items())
    with pytest.raises(UserError, match=r"start with --slots [0-9]+ or fewer"):
        train_steps("batch-norm", Slots(64), torch.float32)


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (8, "4 in a batch, of 2 rows each"),
        (4, "4 in a batch, of 1 row each"),
        (10, "4 in a batch, of 2 or 3 rows each"),
        (1, "4, but a batch has 1 row, so 3 slots have none: larger batches, or fewer ranks, are faster"),
    ],
)
def test_the_setup_says_how_many_rows_a_slot_has(rows: int, line: str) -> None:
    tokens = torch.zeros(rows, 3, dtype=torch.long)
    assert describe_slots(4, TokenBatch(tokens, tokens)) == line


def carry_on_rank(world: World) -> list[Any]:
    """Return the carry of all rows, of which the last rank has none and the others have one each."""
    carry = None if world.rank == world.size - 1 else {"h": torch.full((1, 2), float(world.rank))}
    return Slots(world.size, world).whole_carries([carry])


def test_the_carry_is_joined_with_a_rank_that_has_no_rows() -> None:
    for (carry,) in run_ranks(3, carry_on_rank):
        assert carry["h"].tolist() == [[0.0, 0.0], [1.0, 1.0]]
