"""An update of the weights: gradients are summed over micro-batches, clipped, and applied, or skipped if they
are not finite."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.core.result import ObjectiveOutput, Totals
from foveal.core.runtime import Precision
from foveal.core.state import State
from foveal.core.terminal_text import counted
from foveal.training.first_nonfinite import earliest, find_first_nonfinite
from foveal.training.loss_scaling import LossScaling
from foveal.training.optim import Optimizer
from foveal.training.protocols import Batch, Objective
from foveal.training.slot_steps import SlotOutput, SlotSteps, total_weights
from foveal.training.slots import ONE_SLOT, Slots, count_rows, join_rows, reads_whole_batch

OTHER_BATCHES = (
    "train: the processes have different batches: give the same whole batches to each process, shuffled with "
    "one seed and without a DistributedSampler"
)


@dataclass(frozen=True)
class StepResult:
    """The result of an update. `gradient_norm` and `gradient_max` are before any clipping."""

    loss: float
    metrics: dict[str, float]
    terms: dict[str, float]
    """The means of the terms beside the loss."""
    gradient_norm: float
    gradient_max: float
    first_nonfinite: str | None
    """None if the update was applied, else where the first non-finite number appeared."""

    def to_record(self, lr: float, rounding: str) -> dict[str, Any]:
        """Return what a line of the log says of the update with a learning rate, and why its last bits may
        be others than those of one process."""
        return {
            **self.metrics,
            "objective": self.loss,
            **({"terms": self.terms} if self.terms else {}),
            "rate": lr,
            "gradient_norm": self.gradient_norm,
            "gradient_largest": self.gradient_max,
            **({"rounding": rounding} if rounding else {}),
        }


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

    Raises: UserError: a batch can't be cut into the slots, or this rank has another batch than the main rank.
    """
    model.train()
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    weights = list(optimizer.trainable.values())
    cut_batches = [slots.cut(batch) for batch in batches]
    cut_carries = [slots.cut_carry(*pair) for pair in zip(carries, batches, strict=True)]
    check_slots(model, objective, batches, slots)
    totals, device = total_weights(objective, batches), next(model.parameters()).device
    steps = SlotSteps(
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
        outputs = _compute_slots(steps, optimizer, scaling)
        optimizer.put_gradients(slots.sum([output.gradients for output in outputs], weights))
        if scaling is not None:
            optimizer.divide_gradients(scaling.factor)
        facts = [
            getattr(batch, "fact", "") for batch in batches
        ]  # of what is read at the start, all are equal
        measured = slots.all([(output.losses, output.metrics, output.terms, facts) for output in outputs])
        if measured[0][-1] != facts:
            raise UserError(OTHER_BATCHES)
        loss = float(torch.stack([loss for losses, *_ in measured for loss in losses]).sum())
        norm, largest = optimizer.gradient_stats()
        overflows = math.isfinite(loss) and not math.isfinite(norm)
        if scaling is None or not overflows or not scaling.shrink():
            break
        _restore(buffers)

    metrics, terms = Totals(), Totals()
    for _, metrics_of_slot, terms_of_slot, _ in measured:
        for totals_of, of_slot in ((metrics, metrics_of_slot), (terms, terms_of_slot)):
            for each in of_slot:
                totals_of.add(each)
    new_carries = steps.new_carries(outputs, optimizer.placement)
    first_nonfinite = None
    if math.isfinite(loss) and math.isfinite(norm):
        optimizer.step(lr, norm)
        if scaling is not None:
            scaling.count_step()
    else:
        first_nonfinite = _find_first_nonfinite(model, steps, optimizer.trainable)
        _restore(buffers)
        new_carries = steps.with_nonfinite_reset(new_carries)
    result = StepResult(loss, metrics.means(), terms.means(), norm, largest, first_nonfinite)
    return result, [join_rows(each) for each in new_carries]


def _compute_slots(steps: SlotSteps, optimizer: Optimizer, scaling: LossScaling | None) -> list[SlotOutput]:
    """Return the outputs of the own slots."""
    slots = steps.slots
    if slots.world.runs_slots_together:
        return steps.backward(range(len(slots.own)), optimizer, scaling)
    weights = list(optimizer.trainable.values())
    return slots.run(lambda place: steps.backward([place], optimizer, scaling)[0], weights)


def _restore(buffers: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Give each buffer the value beside it."""
    for buffer, value in buffers:
        buffer.copy_(value)


def check_slots(model: nn.Module, objective: Objective, batches: Sequence[Batch], slots: Slots) -> None:
    """Check that each slot has rows and can wait for the others, if these compute together.

    Raises: UserError: a slot has no rows, or several slots of a rank would have to wait.
    """
    together, world = reads_whole_batch(model, objective), slots.world
    if together and world.runs_slots_together and slots.count > 1:
        raise UserError(
            "--pp: batch norm or the choice of rows needs all slots at the same time, and stages compute one "
            "after another: leave out --pp"
        )
    if together and world.shares_weights and slots.count > world.size:
        raise UserError(
            "--fsdp: batch norm or the choice of rows needs a rank for each slot: start "
            f"--ranks {slots.count}, or leave out --fsdp"
        )
    if together and slots.count > 1 and (rows := min(map(count_rows, batches))) < slots.count:
        raise UserError(
            f"training.slots={slots.count}: a batch has {counted(rows, 'row')}, and batch norm or the choice "
            f"of rows needs a row in each slot: start with --slots {rows} or fewer"
        )


def _find_first_nonfinite(model: nn.Module, steps: SlotSteps, weights: dict[str, Tensor]) -> str:
    """Return where the first non-finite number of all ranks appears."""

    def outputs_of(place: int) -> list[ObjectiveOutput]:
        own = [index for index, batches in enumerate(steps.batches) if batches[place] is not None]
        return [steps.forward(place, index)[0] for index in own]

    def forward_all() -> list[ObjectiveOutput]:
        return [output for outputs in steps.slots.run(outputs_of, [*weights.values()]) for output in outputs]

    gradients = {name: weight.grad for name, weight in weights.items()}
    return earliest(steps.slots.world.exchange(find_first_nonfinite(model, gradients, forward_all)))
