"""The times of `foveal plan` against the eight efficiencies of Megatron-LM (Shoeybi et al. 2019, figure 5).

Efficiency is the work of a GPU in a second over that of one GPU with the smallest model. Counted is Foveal's
step with what Megatron-LM does otherwise: weights, gradients and messages have 16 bits, one GPU computes all
logits at once, and gradients are summed in rings. The part of the peak that products reach is set once, so
that the first row has the 39 TFLOP/s of the paper; the other seven follow.
"""

import argparse
import json
from collections import Counter
from dataclasses import dataclass, replace

import torch

from foveal.ops.jit.dispatch import reference_only
from foveal.studies.plan.hardware import ASSUMED, Hardware, Utilization, named_hardware
from foveal.studies.plan.layout import Layout
from foveal.studies.plan.messages import all_messages
from foveal.studies.plan.planned_model import sized_task
from foveal.studies.plan.rank_step import RankStep, count_step
from foveal.studies.plan.recorder import Message
from foveal.studies.plan.step_time import step_time
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of

ROWS, VOCABULARY, COPIES, BASELINE = 8, 51200, 64, 39e12
PUBLISHED = {
    ("megatron-1.2b", 1): (1.00, 0.96),
    ("megatron-2.5b", 2): (0.95, 0.83),
    ("megatron-4.2b", 4): (0.82, 0.79),
    ("megatron-8.3b", 8): (0.77, 0.74),
}
"""The efficiencies by preset and tp: of one copy of the model, and of 64 copies."""


@dataclass(frozen=True)
class Row:
    """An efficiency as published, and as planned."""

    preset: str
    layout: Layout
    published: float
    planned: float
    seconds: float


def efficiencies() -> tuple[list[Row], Utilization]:
    """Return the eight rows, and the parts of the peaks that are reached."""
    hardware = named_hardware("v100-dgx2h")
    counted = {
        (preset, tp, copies): _count(preset, Layout(ranks=tp * copies, tp=tp))
        for preset, tp in PUBLISHED
        for copies in (1, COPIES)
    }
    utilization = _fitted(*counted["megatron-1.2b", 1, 1], hardware)
    rows = []
    for (preset, tp, copies), (step, layout) in counted.items():
        seconds = _seconds(step, layout, hardware, utilization)
        published = PUBLISHED[preset, tp][copies > 1]
        rows.append(Row(preset, layout, published, _model_flops(step) / seconds, seconds))
    return [replace(row, planned=row.planned / rows[0].planned) for row in rows], utilization


def _count(preset: str, layout: Layout) -> tuple[RankStep, Layout]:
    with reference_only("cross_entropy"):
        task = sized_task(task_of(load_config(preset)), {"vocabulary": VOCABULARY})
        return count_step(task, layout, ROWS, torch.bfloat16), layout


def _executed_flops(step: RankStep) -> int:
    return sum(each.flops * count for each, count in step.operations.items())


def _model_flops(step: RankStep) -> int:
    return _executed_flops(step) - step.recomputed_flops


def _seconds(step: RankStep, layout: Layout, hardware: Hardware, utilization: Utilization) -> float:
    """Return the time of a step whose gradients are summed in rings."""
    sent = all_messages(step, layout, True).items()
    messages = Counter({each: count for each, count in sent if each.group != "dp"})
    messages[Message("update", "all-reduce", "dp", 2 * step.parameters.own)] = 1
    return step_time(step.operations, messages, layout, step.micro_batches, hardware, utilization).total


def _fitted(step: RankStep, layout: Layout, hardware: Hardware) -> Utilization:
    """Return the parts of the peaks with which one GPU reaches the baseline of the paper."""
    low, high = 0.05, 1.0
    while high - low > 1e-4:
        products = (low + high) / 2
        seconds = _seconds(step, layout, hardware, replace(ASSUMED, products=products))
        low, high = (products, high) if _executed_flops(step) / seconds < BASELINE else (low, products)
    return replace(ASSUMED, products=low)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    rows, part = efficiencies()
    if options.json:
        print(json.dumps({f"{row.preset} x {row.layout.dp}": [row.published, row.planned] for row in rows}))
        return
    print(f"reached of the peaks: products {part.products:.2f}, memory {part.memory}, links {part.links}")
    for row in rows:
        gpus = f"{row.layout.ranks:4} GPUs = dp {row.layout.dp:2} x tp {row.layout.tp}"
        shown = f"published {row.published:4.0%}  planned {row.planned:4.0%}  {row.seconds:.2f} s a step"
        print(f"{row.preset}  {gpus}  {shown}")


if __name__ == "__main__":
    main()
