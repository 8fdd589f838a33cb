"""The forward and backward passes of the slots of a step."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from foveal.core.recompute import recomputing
from foveal.core.result import ObjectiveOutput
from foveal.core.runtime import Precision, autocast, seed_everything
from foveal.core.state import State, detach_state
from foveal.distributed.placement import MicroBatch, Placement, Seed
from foveal.distributed.tree import Gradients
from foveal.training.carry import detach_carry, reset_nonfinite_rows, starting_carry
from foveal.training.loss_scaling import LossScaling
from foveal.training.optim import Optimizer
from foveal.training.protocols import Batch, Objective
from foveal.training.slots import Slots


@dataclass
class SlotOutput:
    """What a slot adds to a step: of each of its micro-batches the loss and the metrics, and their
    gradients."""

    gradients: Gradients
    losses: list[Tensor]
    metrics: list[dict[str, tuple[float, float]]]
    terms: list[dict[str, tuple[float, float]]]
    carries: list[State]


@dataclass(frozen=True)
class SlotSteps:
    """The rows of a step that this process computes, and how. Lists are by micro-batch, then by the place
    among the own slots."""

    objective: Objective
    whole_batches: Sequence[Batch]
    batches: list[list[Any]]
    carries: list[list[State]]
    totals: dict[str, float]
    """The weight of each term over all rows of the step."""
    slots: Slots
    seed: Seed
    device: torch.device
    precision: Precision
    recomputes: bool

    def forward(self, place: int, micro_batch: int) -> tuple[ObjectiveOutput, State]:
        """Return the terms of a slot of a micro-batch, and the new carry."""
        batch = self.batches[micro_batch][place]
        seed_everything(*self._noise_seed(place, micro_batch))
        with autocast(self.device, self.precision):
            carry = starting_carry(self.objective, batch, self.carries[micro_batch][place])
            with recomputing(self.recomputes):
                return self.objective(batch, carry)

    def backward(
        self, places: Sequence[int], optimizer: Optimizer, scaling: LossScaling | None
    ) -> list[SlotOutput]:
        """Return the outputs of slots. The first has the gradients of all, summed over their
        micro-batches."""
        optimizer.zero_grad()
        count = len(self.batches)
        outputs = [SlotOutput([], [], [], [], [None] * count) for _ in places]
        micro_batches, seeds = list[MicroBatch](), list[Seed]()
        for place, output in zip(places, outputs, strict=True):
            for index, batches in enumerate(self.batches):
                if batches[place] is not None:
                    micro_batches.append(partial(self._loss, place, index, output, scaling))
                elif self.slots.world.shares_weights:
                    micro_batches.append(partial(self._no_loss, index))
                else:
                    continue
                seeds.append(self._noise_seed(place, index))
        optimizer.placement.run(micro_batches, seeds)
        none: Gradients = [None] * len(optimizer.trainable)
        for output in outputs:
            output.gradients = none
        outputs[0].gradients = optimizer.take_gradients()
        return outputs

    def _loss(self, place: int, micro_batch: int, output: SlotOutput, scaling: LossScaling | None) -> Tensor:
        """Return the loss of a slot of a micro-batch, and note its results."""
        result, carry = self.forward(place, micro_batch)
        loss = total_loss(result, self.totals)
        output.losses.append(loss.detach())
        output.metrics.append(result.metrics)
        output.terms.append(_measured_terms(result))
        if self.batches[micro_batch][place].stream_starts is not None:
            output.carries[micro_batch] = detach_state(carry)
        return loss if scaling is None else loss * scaling.factor

    def _no_loss(self, micro_batch: int) -> Tensor:
        """Return a loss of zero for a slot without rows: the other ranks need the weights of this one."""
        batch = self.whole_batches[micro_batch].cut(slice(0, 1))  # type: ignore[attr-defined]
        with autocast(self.device, self.precision):
            result, _ = self.objective(batch, starting_carry(self.objective, batch, None))
        return 0.0 * total_loss(result, self.totals)

    def _noise_seed(self, place: int, micro_batch: int) -> Seed:
        return (*self.seed, micro_batch, *self.slots.seed(self.slots.own[place]))

    def new_carries(self, outputs: Sequence[SlotOutput], placement: Placement) -> list[list[State]]:
        """Return the new carries, detached from their history."""
        if all(batch.stream_starts is None for batch in self.whole_batches):
            return [[None] * len(outputs) for _ in self.batches]
        carries = iter(placement.carries([carry for output in outputs for carry in output.carries]))
        by_slot = [[detach_carry(next(carries)) for _ in self.batches] for _ in outputs]
        return [list(of_slots) for of_slots in zip(*by_slot, strict=True)]

    def with_nonfinite_reset(self, carries: list[list[State]]) -> list[list[State]]:
        """Return new carries with the non-finite rows reset."""
        return [
            [reset_nonfinite_rows(self.objective, *pair) for pair in zip(*each, strict=True)]
            for each in zip(self.batches, carries, strict=True)
        ]


def total_weights(objective: Objective, batches: Sequence[Batch]) -> dict[str, float]:
    """Return the weight of each term over all micro-batches."""
    totals: dict[str, float] = {}
    for batch in batches:
        for name, weight in objective.weights(batch).items():
            totals[name] = totals.get(name, 0.0) + weight
    return totals


def _measured_terms(result: ObjectiveOutput) -> dict[str, tuple[float, float]]:
    """Return the sum and the weight of each term beside the loss, such as the load balance of experts."""
    return {
        name: (float(term.sum.detach()), term.weight) for name, term in result.terms.items() if name != "loss"
    }


def total_loss(result: ObjectiveOutput, totals: dict[str, float]) -> Tensor:
    """Return this micro-batch's part of the objective, a scalar."""
    parts = [term.coefficient * term.sum / (totals[name] or 1.0) for name, term in result.terms.items()]
    return torch.stack(parts).sum()
