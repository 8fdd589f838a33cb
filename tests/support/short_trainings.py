"""A few steps of training of every kind of run, in slots, on the ranks of a world."""

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal.core.runtime import Precision
from foveal.data.core.batching import ExampleBatch
from foveal.distributed.world import MakeRanks, World
from foveal.layers.word_vectors import WordVectors
from foveal.tasks.session import Session
from foveal.training.dry_run import compute_row
from foveal.training.optim import Optimizer
from foveal.training.placed_weights import whole_weights
from foveal.training.slots import Slots
from foveal.training.step import train_step
from tests.support.labeled_images import write_images
from tests.support.ranks import run_ranks
from tests.support.small_series import write_ts
from tests.support.untrained_runs import (
    CORPUS,
    DECODER,
    ENCODER,
    IMAGE,
    KINDS,
    PIECES,
    untrained_run,
    write_plays,
    write_reversed,
    write_tagged,
)

STEPS, SLOTS = 2, 4


def stream_run(mixer: str) -> Session:
    return untrained_run(write_plays(), mixer, *DECODER, *CORPUS, "task.batching=streams")


MORE_KINDS: dict[str, Callable[[], Session]] = {
    **{f"stream-{mixer}": partial(stream_run, mixer) for mixer in ("lstm", "mamba", "rwkv", "conv")},
    "ragged-batch-norm": lambda: untrained_run(write_ts(), "series-resnet", "data.batch_tokens=256"),
    "experts": lambda: untrained_run(write_plays(), "moe", *DECODER, *CORPUS),
    "batch-norm": lambda: untrained_run(write_images(count=20), "image-classification", *IMAGE),
    "hardest-rows": lambda: untrained_run(write_images(count=20), "airbench96", "data.image.batch_size=16"),
    "learned-start": lambda: untrained_run(
        write_plays(),
        "lstm",
        *DECODER,
        *CORPUS,
        "task.batching=streams",
        "model.lstm.learned_initial_state=true",
    ),
    "average-of-steps": lambda: untrained_run(
        write_plays(), "gru", *DECODER, *CORPUS, "training.grad_accumulation=3", "data.batch_tokens=128"
    ),
}
FOUR = ("model.layers=4",)


def deep_stream_run(mixer: str, *settings: str) -> Session:
    return untrained_run(write_plays(), mixer, *DECODER, *CORPUS, "task.batching=streams", *FOUR, *settings)


DEEP_KINDS: dict[str, Callable[[], Session]] = {
    "deep-attention": lambda: untrained_run(
        write_plays(), "attention", *DECODER, *CORPUS, *FOUR, "model.attention.heads=2"
    ),
    "deep-tied": lambda: untrained_run(
        write_plays(), "attention", *DECODER, *CORPUS, *FOUR, "model.tie_embeddings=true"
    ),
    "dropping-experts": lambda: untrained_run(
        write_plays(), "moe", *DECODER, *CORPUS, *FOUR, "model.experts.capacity_factor=0.75"
    ),
    "deep-experts": lambda: untrained_run(write_plays(), "moe", *DECODER, *CORPUS, *FOUR),
    **{f"deep-{mixer}": partial(deep_stream_run, mixer) for mixer in ("lstm", "gru", "mamba", "rwkv")},
    "deep-learned-start": partial(deep_stream_run, "lstm", "model.lstm.learned_initial_state=true"),
    "deep-average-of-steps": partial(
        deep_stream_run, "gru", "training.grad_accumulation=2", "data.batch_tokens=128"
    ),
    "deep-translation": lambda: untrained_run(
        write_reversed(),
        "translation",
        *ENCODER,
        *DECODER,
        *PIECES,
        *FOUR,
        "model.encoder.layers=3",
        "data.batch_tokens=200",
    ),
    "deep-tagging": lambda: untrained_run(write_tagged(), "tagging", *ENCODER, "model.encoder.layers=4"),
}
"""Kinds of runs with enough blocks for several stages."""
ALL_KINDS = KINDS | MORE_KINDS
NOT_CUT = {"vqa", "vqa-multiple-choice"}
"""Several questions share an image, so the rows of their batches can't be cut."""


def to_dtype(batch: Any, dtype: torch.dtype) -> Any:
    if not isinstance(batch, ExampleBatch):
        return batch
    columns = {
        name: column.to(dtype) if column.is_floating_point() else column
        for name, column in batch.columns.items()
    }
    return replace(batch, columns=columns)


class CastBatches:
    """Batches with numbers of another dtype."""

    def __init__(self, batches: Any, dtype: torch.dtype):
        self.batches, self.dtype, self.per_epoch = batches, dtype, batches.per_epoch

    def batch(self, epoch: int, index: int) -> Any:
        return to_dtype(self.batches.batch(epoch, index), self.dtype)


def drop_nothing(model: nn.Module) -> None:
    """Slots have noise of their own, so a whole batch drops other units."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.0  # type: ignore[assignment]
        if isinstance(module, WordVectors):
            module.drop.zero_()


def train_steps(
    kind: str,
    slots: Slots,
    dtype: torch.dtype,
    precision: Precision = "float32",
    optimizer_name: str = "",
    activation_checkpointing: bool = False,
) -> tuple[list[Any], dict[str, Tensor]]:
    """Return the results of some steps, and the weights and statistics after them. In float64, without
    noise."""
    here = Path.cwd()
    os.chdir(tempfile.mkdtemp(dir=here))  # the data of two runs have one name
    run: Any = (ALL_KINDS | DEEP_KINDS)[kind]()
    os.chdir(here)
    model = run.model.to(dtype)
    if dtype == torch.float64:
        drop_nothing(model)
    task = run.task.bind(run.processor, model)
    objective, batches = task.objective(), CastBatches(task.train_batches(run.prepared.train), dtype)
    compute = partial(compute_row, model, objective, batches, precision)
    placement = slots.world.place(model, compute)
    objective = placement.computing(objective)
    accumulation = run.config.training.grad_accumulation
    settings = run.config.optimizer
    settings = settings.model_copy(update={"name": optimizer_name}) if optimizer_name else settings
    optimizer = Optimizer(model, settings, placement)
    carries: list[Any] = [None] * accumulation
    results = []
    for step in range(STEPS):
        indices = range(step * accumulation, (step + 1) * accumulation)
        micro_batches = [batches.batch(*divmod(index, batches.per_epoch)) for index in indices]
        result, carries = train_step(
            model,
            objective,
            optimizer,
            micro_batches,
            carries,
            lr=1e-3,
            seed=(0, step),
            precision=precision,
            slots=slots,
            activation_checkpointing=activation_checkpointing,
        )
        results.append(result)
    return results, {name: value.clone() for name, value in whole_weights(model, placement)}


def rank_steps(world: World, folder: Path, make_ranks: MakeRanks, kind: str, slots: int, *more: Any) -> Any:
    """Return `train_steps(kind, slots, ...)` of a process of the world that `make_ranks` makes."""
    ranks = make_ranks(world.rank, world.size)
    path = folder / str(world.rank)
    path.mkdir(parents=True)
    os.chdir(path)
    return train_steps(kind, Slots(slots, ranks), *more)


def check_equal_training(
    kind: str, slots: int, processes: int, make_ranks: MakeRanks, folder: Path, *more: Any
) -> None:
    """Check that processes train as a single one does with as many slots, in float64, up to rounding."""
    torch.set_num_threads(1)
    results, weights = train_steps(kind, Slots(slots), torch.float64, *more)
    arguments = folder, make_ranks, kind, slots, torch.float64, *more
    for others, after in run_ranks(processes, rank_steps, *arguments):
        check_same_training(results, weights, others, after)


def check_equal_launches(
    kind: str, slots: int, processes: int, make_ranks: MakeRanks, folder: Path, *more: Any
) -> None:
    """Check that two launches of as many processes have the same bits."""
    first, second = (
        run_ranks(processes, rank_steps, folder / launch, make_ranks, kind, slots, torch.float32, *more)
        for launch in ("first", "second")
    )
    for (results, weights), (others, after) in zip(first, second, strict=True):
        assert results == others
        assert all(torch.equal(weights[name], after[name]) for name in weights)


def check_same_training(
    results: list[Any], weights: dict[str, Tensor], others: list[Any], after: dict[str, Tensor]
) -> None:
    """Check that steps in float64 have the same results, and the same weights afterwards, up to rounding."""
    for one, other in zip(results, others, strict=True):
        assert other.loss == pytest.approx(one.loss, rel=1e-12)
        assert other.metrics == pytest.approx(one.metrics, rel=1e-6)
        assert other.gradient_norm == pytest.approx(one.gradient_norm, rel=1e-12)
        assert other.gradient_max == pytest.approx(one.gradient_max, rel=1e-12)
    for name, weight in weights.items():
        assert torch.allclose(after[name], weight, rtol=0, atol=1e-12), name
