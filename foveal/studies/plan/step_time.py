"""The time of a step on named hardware, from what was counted."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from foveal.studies.plan.hardware import Hardware, Utilization
from foveal.studies.plan.layout import Layout
from foveal.studies.plan.recorder import Message, Operation


@dataclass(frozen=True)
class StepTime:
    """The seconds of a step, by what they are spent on."""

    compute: float
    """The operations of all micro-batches."""
    layers: float
    """Messages in the middle of a micro-batch: of split layers, experts, and gathered weights."""
    pipeline: float
    """Messages between stages."""
    bubble: float
    """Waiting of a stage for the others."""
    gradients: float
    """The sum of the gradients over the copies of the model."""
    update: float
    """The operations of the update of the weights."""

    @property
    def total(self) -> float:
        return self.compute + self.layers + self.pipeline + self.bubble + self.gradients + self.update


def step_time(
    operations: Counter[Operation],
    messages: Counter[Message],
    layout: Layout,
    micro_batches: int,
    hardware: Hardware,
    utilization: Utilization,
) -> StepTime:
    """Return the time of a step.

    Messages wait for operations, and operations for messages, but for those of shared weights (`--fsdp`),
    which are sent meanwhile: there the longer of both counts.
    """

    def operations_in(*phases: str) -> float:
        chosen = ((each, count) for each, count in operations.items() if each.phase in phases)
        return math.fsum(count * operation_seconds(each, hardware, utilization) for each, count in chosen)

    def messages_of(chosen: Iterable[Message]) -> float:
        return math.fsum(
            messages[each] * message_seconds(each, layout, hardware, utilization) for each in chosen
        )

    in_update = [each for each in messages if each.phase == "update"]
    between_stages = [each for each in messages if each.group == "pp"]
    compute = operations_in("forward", "backward")
    layers = messages_of(messages.keys() - {*in_update, *between_stages})
    if layout.fsdp:
        layers = max(0.0, layers - compute)
    return StepTime(
        compute,
        layers,
        messages_of(between_stages),
        (compute + layers) * bubble(layout, micro_batches),
        messages_of(in_update),
        operations_in("update"),
    )


def bubble(layout: Layout, micro_batches: int) -> float:
    """Return the time that a stage waits, over the time that it computes: `(p - 1) / (v m)` with p stages, v
    parts of the pipeline in each process, and m micro-batches (Narayanan et al. 2021, section 2.2)."""
    return (layout.pp - 1) / (layout.virtual_stages * micro_batches)


def operation_seconds(operation: Operation, hardware: Hardware, utilization: Utilization) -> float:
    """Return the time of an operation: of its products, or of its memory if that takes longer (Williams et
    al. 2009)."""
    peak = hardware.half_flops if operation.is_half else hardware.single_flops
    products = operation.flops / (peak * utilization.products)
    return max(products, operation.moved / (hardware.memory_speed * utilization.memory))


def message_seconds(message: Message, layout: Layout, hardware: Hardware, utilization: Utilization) -> float:
    """Return the time of a message among the N members of a group.

    A process sends `2 (N - 1) / N` of the size in an all-reduce, the size itself to the next stage, and half
    of an all-reduce else (Thakur et al. 2005). Between nodes, all processes of a node send at the same time.
    A ring leaves a node once for all of its members there; parts from all to all leave for each.
    """
    members = layout.members(message.group)
    if len(members) == 1:
        return 0.0
    parts = {"all-reduce": 2.0, "send": len(members) / (len(members) - 1)}.get(message.collective, 1.0)
    sent = parts * message.size * (len(members) - 1) / len(members)
    in_node = sum(member < hardware.per_node for member in members)
    speed = hardware.link_speed
    if in_node < len(members) and (message.collective != "send" or members[1] >= hardware.per_node):
        share = hardware.network_speed / min(hardware.per_node, layout.ranks)
        together = in_node if message.collective in ("all-reduce", "all-gather", "reduce-scatter") else 1
        speed = min(speed, share * together)
    return sent / (speed * utilization.links)
