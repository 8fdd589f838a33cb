"""An update of the weights: gradients are summed over micro-batches, clipped, and applied, or skipped if they
are not finite."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.core.recompute import recomputing
from foveal.core.result import ObjectiveOutput, Totals
from foveal.core.runtime import Precision, autocast, seed_everything
from foveal.core.state import State, detach_state, finite_rows, map_state, reset_rows
from foveal.distributed.tree import Gradients
from foveal.training.first_nonfinite import earliest, find_first_nonfinite
from foveal.training.loss_scaling import LossScaling
from foveal.training.optim import Optimizer
from foveal.training.protocols import Batch, Objective
from foveal.training.slots import ONE_SLOT, Slots, count_rows, join_rows, reads_whole_batch


@dataclass(frozen=True)
class StepResult:
    """The result of an update. `gradient_norm` and `gradient_max` are before any clipping."""

    loss: float
    metrics: dict[str, float]
    gradient_norm: float
    gradient_max: float
    first_nonfinite: str | None
    """None if the update was applied, else where the first non-finite number appeared."""


@dataclass
class _SlotOutput:
    """What a slot adds to a step: of each of its micro-batches the loss and the metrics, and their
    gradients."""

    gradients: Gradients
    losses: list[Tensor]
    metrics: list[dict[str, tuple[float, float]]]
    carries: list[State]


@dataclass(frozen=True)
class _SlotSteps:
    """The rows of a step that this process computes, and how. Lists are by micro-batch, then by the place
    among the own slots."""

    objective: Objective
    whole_batches: Sequence[Batch]
    batches: list[list[Any]]
    carries: list[list[State]]
    totals: dict[str, float]
    """The weight of each term over all rows of the step."""
    slots: Slots
    seed: tuple[object, ...]
    device: torch.device
    precision: Precision
    recomputes: bool

    def forward(self, place: int, micro_batch: int) -> tuple[ObjectiveOutput, State]:
        """Return the terms of a slot of a micro-batch, and the new carry."""
        batch = self.batches[micro_batch][place]
        seed_everything(*self.seed, micro_batch, *self.slots.seed(self.slots.own[place]))
        with autocast(self.device, self.precision):
            carry = starting_carry(self.objective, batch, self.carries[micro_batch][place])
            with recomputing(self.recomputes):
                return self.objective(batch, carry)

    def backward(self, place: int, optimizer: Optimizer, scaling: LossScaling | None) -> _SlotOutput:
        """Return the gradients of a slot, summed over its micro-batches."""
        optimizer.zero_grad()
        output = _SlotOutput([], [], [], [])
        for index, batches in enumerate(self.batches):
            batch = batches[place]
            if batch is None:
                output.carries.append(None)
                if self.slots.world.shares_weights:
                    self._compute_nothing(index)
                continue
            result, carry = self.forward(place, index)
            loss = total_loss(result, self.totals)
            scaled = loss if scaling is None else loss * scaling.factor
            scaled.backward()  # type: ignore[no-untyped-call]
            output.losses.append(loss.detach())
            output.metrics.append(result.metrics)
            output.carries.append(None if batch.stream_starts is None else detach_carry(carry))
        output.gradients = optimizer.take_gradients()
        return output

    def _compute_nothing(self, micro_batch: int) -> None:
        """Compute gradients of zero for a slot without rows: the other ranks need the weights of this one."""
        batch = self.whole_batches[micro_batch].cut(slice(0, 1))  # type: ignore[attr-defined]
        with autocast(self.device, self.precision):
            result, _ = self.objective(batch, starting_carry(self.objective, batch, None))
        (0.0 * total_loss(result, self.totals)).backward()  # type: ignore[no-untyped-call]

    def with_nonfinite_reset(self, carries: list[list[State]]) -> list[list[State]]:
        """Return new carries with the non-finite rows reset."""
        return [
            [_reset_nonfinite_rows(self.objective, *pair) for pair in zip(*each, strict=True)]
            for each in zip(self.batches, carries, strict=True)
        ]


def train_step(
    model: nn.Module,
    objective: Objective,
    optimizer: Optimizer,
    batches: Sequence[Batch],
    carries: Sequence[State],
    *,
    lr: float,
    seed: tuple[object, ...],
    precision: Precision = "float32",
    scaling: LossScaling | None = None,
    slots: Slots = ONE_SLOT,
    activation_checkpointing: bool = False,
) -> tuple[StepResult, list[State]]:
    """Train on the micro-batches of a step, each with the carry of its rows. Return the result and the new
    carries.

    With several `slots`, each batch is cut into these, and a carry has the rows of the own slots.

    The objective is the sum over the terms of `coefficient * sum / total weight`. The total weight is taken
    over all micro-batches before the first backward pass, so the micro-batches equal one large batch. The
    noise of micro-batch k is a function of (seed, k), and of the slot if there are several. If the loss or
    the gradient is not finite, weights, buffers and optimizer stay the same bit for bit, and the non-finite
    rows of the carry are reset. With loss `scaling`, gradients that overflow are first computed again with
    smaller factors.

    Raises: UserError: a batch can't be cut into the slots.
    """
    model.train()
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    weights = list(optimizer.trainable.values())
    cut_batches = [slots.cut(batch) for batch in batches]
    cut_carries = [slots.cut_carry(*pair) for pair in zip(carries, batches, strict=True)]
    check_slots(model, objective, batches, slots)
    totals, device = total_weights(objective, batches), next(model.parameters()).device
    steps = _SlotSteps(
        objective,
        batches,
        cut_batches,
        cut_carries,
        totals,
        slots,
        seed,
        device,
        precision,
        activation_checkpointing,
    )

    while True:
        outputs = slots.run(lambda place: steps.backward(place, optimizer, scaling), weights)
        optimizer.put_gradients(slots.sum([output.gradients for output in outputs], weights))
        if scaling is not None:
            optimizer.divide_gradients(scaling.factor)
        measured = slots.all([(output.losses, output.metrics) for output in outputs])
        loss = float(torch.stack([loss for losses, _ in measured for loss in losses]).sum())
        norm, largest = optimizer.gradient_stats()
        overflows = math.isfinite(loss) and not math.isfinite(norm)
        if scaling is None or not overflows or not scaling.shrink():
            break
        _restore(buffers)

    metrics = Totals()
    for each in (one for _, of_slot in measured for one in of_slot):
        metrics.add(each)
    new_carries = [[output.carries[index] for output in outputs] for index in range(len(batches))]
    first_nonfinite = None
    if math.isfinite(loss) and math.isfinite(norm):
        optimizer.step(lr, norm)
        if scaling is not None:
            scaling.count_step()
    else:
        first_nonfinite = _find_first_nonfinite(model, steps, optimizer.trainable)
        _restore(buffers)
        new_carries = steps.with_nonfinite_reset(new_carries)
    result = StepResult(loss, metrics.means(), norm, largest, first_nonfinite)
    return result, [join_rows(each) for each in new_carries]


def _restore(buffers: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Give each buffer the value beside it."""
    for buffer, value in buffers:
        buffer.copy_(value)


def check_slots(model: nn.Module, objective: Objective, batches: Sequence[Batch], slots: Slots) -> None:
    """Check that each slot has rows and can wait for the others, if these compute together.

    Raises: UserError: a slot has no rows, or several slots of a rank would have to wait.
    """
    together, world = reads_whole_batch(model, objective), slots.world
    if together and world.shares_weights and slots.count > world.size:
        raise UserError(
            "--fsdp: batch norm or the choice of rows needs a rank for each slot: start "
            f"--ranks {slots.count}, or leave out --fsdp"
        )
    if together and slots.count > 1 and min(map(count_rows, batches)) < slots.count:
        raise UserError(
            "training.slots: a batch has fewer rows than slots, and batch norm or the choice of rows needs a "
            "row in each: lower --slots"
        )


def _find_first_nonfinite(model: nn.Module, steps: _SlotSteps, weights: dict[str, Tensor]) -> str:
    """Return where the first non-finite number of all ranks appears."""

    def outputs_of(place: int) -> list[ObjectiveOutput]:
        own = [index for index, batches in enumerate(steps.batches) if batches[place] is not None]
        return [steps.forward(place, index)[0] for index in own]

    def forward_all() -> list[ObjectiveOutput]:
        return [output for outputs in steps.slots.run(outputs_of, [*weights.values()]) for output in outputs]

    gradients = {name: weight.grad for name, weight in weights.items()}
    return earliest(steps.slots.world.exchange(find_first_nonfinite(model, gradients, forward_all)))


def total_weights(objective: Objective, batches: Sequence[Batch]) -> dict[str, float]:
    """Return the weight of each term over all micro-batches."""
    totals: dict[str, float] = {}
    for batch in batches:
        for name, weight in objective.weights(batch).items():
            totals[name] = totals.get(name, 0.0) + weight
    return totals


def total_loss(result: ObjectiveOutput, totals: dict[str, float]) -> Tensor:
    """Return this micro-batch's part of the objective, a scalar."""
    parts = [term.coefficient * term.sum / (totals[name] or 1.0) for name, term in result.terms.items()]
    return torch.stack(parts).sum()


def starting_carry(objective: Objective, batch: Batch, carry: State) -> State:
    """Return the initial carry of a batch. Rows that begin a stream are reset to the initial state."""
    if batch.stream_starts is None:
        return None
    if carry is None:
        return objective.start(batch)
    return (
        reset_rows(carry, batch.stream_starts, objective.start(batch)) if batch.stream_starts.any() else carry
    )


def detach_carry(carry: State) -> State:
    """Return the carry detached from its history, in new storage.

    A view would keep its whole chunk in memory. The memory layout of a view would also differ from the layout
    after a resume, and then the last bit of a product may differ.
    """

    def leaf(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        own_storage = value.is_contiguous() and value.untyped_storage().nbytes() == value.nbytes
        return value if own_storage else value.clone(memory_format=torch.contiguous_format)

    return map_state(leaf, detach_state(carry))


def _reset_nonfinite_rows(objective: Objective, batch: Batch | None, carry: State) -> State:
    """Reset the rows of the carry that are not finite."""
    if batch is None or batch.stream_starts is None or carry is None:
        return None
    nonfinite = ~finite_rows(carry, len(batch.stream_starts))
    return detach_carry(reset_rows(carry, nonfinite, objective.start(batch))) if nonfinite.any() else carry
