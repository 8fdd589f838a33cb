"""Blocks that are computed again in the backward pass: the same bits, less memory."""

from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from foveal import layers
from foveal.core.errors import UserError
from foveal.core.recompute import keeping_states, recomputing, run_block
from foveal.core.runtime import Precision
from foveal.distributed.mesh import MeshRanks
from foveal.distributed.sharded import ShardedRanks
from foveal.distributed.world import MakeRanks
from foveal.training.slots import Slots
from tests.support.command_line import run_command
from tests.support.labeled_images import write_images
from tests.support.ranks import run_ranks
from tests.support.short_trainings import rank_steps, train_steps
from tests.support.untrained_runs import CORPUS, IMAGE, untrained_run, write_plays

KINDS = ("translation", "experts", "stream-lstm", "hybrid", "image-classification")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    return tmp_path


def check_same_bits(first: Any, second: Any) -> None:
    (results, weights), (others, after) = first, second
    assert results == others
    assert all(torch.equal(weights[name], after[name]) for name in weights)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "kind", ["translation", *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS[1:])]
)
def test_the_same_bits(kind: str, precision: Precision) -> None:
    """With dropout, whose noise is drawn again, and in slots."""
    for slots in (1, 2):
        arguments = kind, Slots(slots), torch.float32, precision, ""
        check_same_bits(train_steps(*arguments, False), train_steps(*arguments, True))


@pytest.mark.parametrize("setting", ["true", "false"])
def test_the_setting_reaches_the_steps(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Mock(wraps=checkpoint)
    monkeypatch.setattr("torch.utils.checkpoint.checkpoint", calls)
    small = ("--model", "attention", *CORPUS, "model.layers=2", "--budget", "3steps", "--run", "run")
    result = run_command("train", write_plays(), *small, f"training.activation_checkpointing={setting}")
    assert result.code == 0, result.err
    # Two blocks of each of three steps, and of the step on trial, which may be repeated.
    assert calls.call_count >= 8 if setting == "true" else not calls.call_count


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["translation", "experts"])
@pytest.mark.parametrize(("make_ranks", "slots"), [(ShardedRanks, 2), (partial(MeshRanks, tp=2), 1)])
def test_together_with_shared_weights(kind: str, make_ranks: MakeRanks, slots: int, folder: Path) -> None:
    arguments = make_ranks, kind, slots, torch.float32, "float32", ""
    first, second = (
        run_ranks(2, rank_steps, folder / str(recomputes), *arguments, recomputes)
        for recomputes in (False, True)
    )
    for pair in zip(first, second, strict=True):
        check_same_bits(*pair)


def kept_bytes(recomputes: bool) -> int:
    """Return the bytes that the forward pass of a stack keeps for the backward pass."""
    torch.manual_seed(0)
    blocks = [
        layers.Block(layers.SelfAttention(32, 2), layers.MLP(32, 128), norm="layer", residual=True)
        for _ in range(4)
    ]
    stack, x = layers.Stack([*blocks]), torch.randn(2, 16, 32, requires_grad=True)
    storages = dict[int, int]()

    def pack(tensor: Tensor) -> Tensor:
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), recomputing(recomputes):
        y, _, _ = stack(x)
    y.sum().backward()
    assert x.grad is not None
    return sum(storages.values())


def test_only_inputs_are_kept() -> None:
    assert kept_bytes(True) < 0.2 * kept_bytes(False)


@pytest.mark.parametrize(
    ("kind", "goes_on"),
    [("translation", False), ("experts", False), ("tagging", False), ("stream-lstm", True)],
)
def test_no_state_is_kept_that_nobody_reads(
    kind: str, goes_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys and values of each block would stay in memory until the end of the forward pass."""
    states = []

    def spy(*arguments: Any) -> Any:
        output = run_block(*arguments)
        states.append(output[1])
        return output

    monkeypatch.setattr("foveal.layers.blocks.stack.run_block", spy)
    train_steps(kind, Slots(1), torch.float32, "float32", "", True)
    assert states
    assert all((state != {}) == goes_on for state in states)


def test_a_state_that_was_not_kept_can_not_go_on() -> None:
    stack, x = layers.Stack([layers.Block(layers.GRU(8, 8))]), torch.randn(2, 3, 8)
    with recomputing(True), keeping_states(False):
        _, state, _ = stack(x)
    with pytest.raises(ValueError, match="a state of another mixer"):
        stack(x, state)


def test_a_model_without_a_stack_is_refused() -> None:
    setting = "training.activation_checkpointing=true"
    with pytest.raises(UserError, match="has no stack of blocks"):
        untrained_run(write_images(count=20), "image-classification", *IMAGE, setting)
