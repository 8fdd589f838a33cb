"""Evaluation: the means of loss and metrics over held-out batches."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from foveal.core.progress import ProgressCallback, no_progress
from foveal.core.result import PredictedLabels, Totals
from foveal.core.runtime import Precision, autocast, seed_everything
from foveal.core.state import State
from foveal.distributed.world import ONE_PROCESS
from foveal.training.agreement import ALONE, Agreement
from foveal.training.carry import starting_carry
from foveal.training.protocols import Batch, Batches, Objective
from foveal.training.share import share
from foveal.training.slots import Slots, count_rows


@dataclass(frozen=True)
class _BatchScores:
    """The sums and weights of a batch, and its labels."""

    metrics: dict[str, tuple[float, float]]
    terms: dict[str, tuple[float, float]]
    coefficients: dict[str, float]
    predicted_labels: dict[int, PredictedLabels]


def evaluate(
    model: nn.Module,
    objective: Objective,
    batches: Batches,
    *,
    precision: Precision = "float32",
    progress: ProgressCallback = no_progress,
    predicted_labels: dict[int, PredictedLabels] | None = None,
    together: Agreement = ALONE,
    slots: int = 1,
) -> dict[str, float]:
    """Evaluate every batch once, with the state carried from batch to batch.

    The labels of each row are added to `predicted_labels`. The result has the metrics of the objective. If
    the objective reports no metric `loss`, `loss` is the value of the objective. A mean is NaN if there is
    nothing to measure, as for answers that never occurred in training. Noise is the same in each evaluation.
    The ranks that evaluate `together` take batches in turn. If a batch continues the one before, its rows are
    cut into `slots`, which the ranks share if they divide them; otherwise each rank evaluates all.
    """
    model.eval()
    metrics, terms = Totals(), Totals()
    coefficients: dict[str, float] = {}
    with torch.no_grad():
        for scores in _score_batches(model, objective, batches, precision, progress, together, slots):
            metrics.add(scores.metrics)
            terms.add(scores.terms)
            coefficients |= scores.coefficients
            if predicted_labels is not None:
                predicted_labels |= scores.predicted_labels
    means = terms.means()
    loss = sum(coefficient * means.get(name, math.nan) for name, coefficient in coefficients.items())
    return {"loss": loss} | metrics.means()


def _score_batches(
    model: nn.Module,
    objective: Objective,
    batches: Batches,
    precision: Precision,
    progress: ProgressCallback,
    together: Agreement,
    slots: int,
) -> Iterator[_BatchScores]:
    """Yield the scores of each batch, or of each slot of a batch, in order."""
    device = next(model.parameters()).device

    def score(batch: Batch, carry: State, *seed: int) -> tuple[_BatchScores, State]:
        seed_everything("evaluate", *seed)
        with autocast(device, precision):
            result, carry = objective(batch, starting_carry(objective, batch, carry))
        terms = {name: (float(term.sum), term.weight) for name, term in result.terms.items()}
        coefficients = {name: term.coefficient for name, term in result.terms.items()}
        return _BatchScores(result.metrics, terms, coefficients, result.predicted_labels), carry

    count, world = slots_of_streams(batches, slots), together.world
    if count is None:
        among = together if world.size > 1 else ALONE
        yield from share(
            batches.per_epoch, lambda index: score(batches.batch(0, index), None, index)[0], progress, among
        )
        return
    is_shared = world.size > 1 and count % world.size == 0
    cut = Slots(count, world if is_shared else ONE_PROCESS)
    carries: list[State] = [None] * len(cut.own)
    for index in range(batches.per_epoch):
        progress(index, batches.per_epoch)
        own = list[_BatchScores]()
        for place, part in enumerate(cut.cut(batches.batch(0, index))):
            scores, carries[place] = score(part, carries[place], index, *cut.seed(cut.own[place]))
            own.append(scores)
        of_all = together.exchange(own if is_shared else None)  # a signal to a rank ends all
        for of_rank in world.by_rank(of_all) if is_shared else [own]:
            yield from of_rank


def slots_of_streams(batches: Batches, slots: int) -> int | None:
    """Return into how many slots the rows of each batch are cut, if they continue those of the batch before.

    A text with fewer streams than `slots` is not cut. None means that each batch can be scored alone.
    """
    first = batches.batch(0, 0) if batches.per_epoch else None
    if first is None or first.stream_starts is None:
        return None
    return slots if 1 < slots <= count_rows(first) else 1
