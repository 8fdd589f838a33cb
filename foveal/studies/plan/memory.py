"""The memory of a process at the peak of a step, by kind."""

from collections import Counter

from foveal.studies.plan.layout import Layout
from foveal.studies.plan.rank_step import RankStep
from foveal.studies.plan.recorder import MemoryKind

NUMBER_BYTES = 4
"""Of a weight and of its gradient: they are float32."""
GATHERED_BLOCKS = 2
"""Blocks whose weights are whole at the same time: one computes, and the next is gathered meanwhile."""


def peak_memory(step: RankStep, layout: Layout) -> Counter[MemoryKind]:
    """Return the bytes of each kind of memory.

    A step was counted with all weights of a stage, and with one micro-batch at a time.
    """
    memory = step.peak.copy()
    if layout.fsdp:
        memory = _shared(memory, step)
    waiting = (micro_batches_in_flight(layout, step.micro_batches) - 1) * step.kept
    memory["activations"] += round(waiting)
    return +memory


def micro_batches_in_flight(layout: Layout, micro_batches: int) -> float:
    """Return how many micro-batches wait in the first stage of a pipeline: as many as there are stages (1F1B,
    Narayanan et al. 2021, section 2.2), and with v parts a process `1 + (p - 1) / (p v)` times as many
    (Korthikanti et al. 2022, section 4.2.3)."""
    p, v = layout.pp, layout.virtual_stages
    in_flight = p if v == 1 else p * (1 + (p - 1) / (p * v))
    return float(min(in_flight, micro_batches))


def _shared(memory: Counter[MemoryKind], step: RankStep) -> Counter[MemoryKind]:
    """Return the memory of a process that holds a part of each weight, gradient and state (ZeRO stage 3,
    Rajbhandari et al. 2020; Zhao et al. 2023).

    Weights outside of the blocks are whole for the whole step. Of the blocks, the gradients of one are whole:
    they are summed while the next block computes, whose own gradients take the place of its activations.
    """
    parameters = step.parameters
    part = parameters.shared / parameters.own
    outside = parameters.gathered - sum(parameters.gathered_blocks)
    block = max(parameters.gathered_blocks, default=0)
    shared: Counter[MemoryKind] = Counter(memory)
    for kind in ("optimizer states", "averages"):
        shared[kind] = round(memory[kind] * part)
    own = NUMBER_BYTES * parameters.shared
    shared["weights"], shared["gradients"] = own, own
    shared["copies of weights"] += outside + GATHERED_BLOCKS * block
    outside, block = parameters.own - sum(parameters.blocks), max(parameters.blocks, default=0)
    shared["working space"] += NUMBER_BYTES * (outside + block)
    return shared
