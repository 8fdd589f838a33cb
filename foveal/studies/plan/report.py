"""A plan for people, and for programs."""

from dataclasses import asdict
from typing import Any

from foveal.inspection.panels import Bars
from foveal.studies.plan.attention_matrix import AttentionMatrix, in_both_units
from foveal.studies.plan.inference import InferenceMemory
from foveal.studies.plan.page import part_bars
from foveal.studies.plan.plan import Plan
from foveal.studies.plan.published import PublishedModel
from foveal.studies.plan.step_time import StepTime
from foveal.studies.plan.training_report import flops_of_each, training_json, training_sections

Facts = list[tuple[str, str]]
GB = 1e9
MEANINGS = {
    "reduce-scatter tp": "sums of split layers, to their positions",
    "all-gather tp": "positions for split layers",
    "all-reduce tp": "sums of the loss and of the gradients of norms",
    "all-reduce dp": "sum of the gradients",
    "all-to-all dp": "sum of the gradients: parts to their process",
    "all-gather dp": "sum of the gradients: sums to all",
    "all-gather dp of norms": "statistics of batch norms",
    "all-to-all dp of experts": "sum of the gradients of experts",
    "all-gather dp of experts": "sum of the gradients of experts",
    "all-to-all ep": "vectors to their experts, and back",
    "send pp": "vectors to the next stage, gradients to the one before",
}
"""What a message is, by its collective and group."""
NOT_FITTING = (
    "more --micro-batches; of language models also --tp, --pp or --fsdp; of stacks of blocks also "
    "training.activation_checkpointing=true"
)
OF_SHARED_WEIGHTS = {
    "all-gather dp": "weights of a block, or of what is outside of the blocks",
    "reduce-scatter dp": "gradients of a block, summed into the parts",
}


def plan_sections(
    name: str, plan: Plan, published: PublishedModel | None = None, price: float | None = None
) -> list[str | Facts]:
    """Return the plan in lines, the verdict first, beside what is published of the model. `price` is that of
    a device for an hour."""
    layout, hardware, time = plan.layout, plan.hardware, plan.time
    memory: Facts = [(kind, _gigabytes(size)) for kind, size in plan.memory.most_common()]
    times: Facts = [(part, f"{spent:.3f} s") for part, spent in _seconds(time).items()]
    each_computes = f"{plan.step.micro_batches} x {plan.step.tokens:,}"
    sections: list[str | Facts] = [
        f"{plan_verdict(name, plan)}\n",
        [
            ("parameters", f"{plan.parameters:,}, of which a process computes {plan.step.parameters.own:,}"),
            *(_published_facts(plan, published) if published else ()),
            ("processes", _processes(plan)),
            ("batch", f"{plan.batch_tokens:,} {plan.unit}: {each_computes} in each of {layout.dp}"),
            *(_attention_facts(plan.attention) if plan.attention else ()),
        ],
        f"\nmemory of a process at its peak, of {hardware.memory / GB:,.0f} GB",
        [*memory, ("in all", _gigabytes(plan.memory_total))],
        "\nmemory of a process in inference",
        _inference_facts(plan.inference),
    ]
    if plan.messages:
        sections += ["\nmessages of a process in a step", _message_facts(plan)]
    sections += [
        f"\ntime of a step on {hardware.name}",
        [
            *times,
            ("in all", f"{time.total:.3f} s, {plan.tokens_per_second:,.0f} {plan.unit}/s"),
            (
                "operations",
                f"{plan.flops / 1e12:,.1f} TFLOP, {plan.model_flop_utilization:.1%} of the peak; "
                f"{flops_of_each(plan)}",
            ),
            *([("bubble", f"{plan.bubble:.1%} of the time that a stage computes")] * (layout.pp > 1)),
        ],
    ]
    return [*sections, *training_sections(plan, published, price), "\nassumed", _assumptions(plan)]


def plan_bars(plan: Plan) -> list[Bars]:
    """Return the memory of a process and the time of a step, by kind."""
    memory: dict[str, float] = {kind: size / GB for kind, size in plan.memory.most_common()}
    size = f"{plan.memory_total / GB:,.1f} of {plan.hardware.memory / GB:,.0f} GB"
    return [
        part_bars(f"memory of a process: {size}", memory, "GB"),
        part_bars(f"time of a step: {plan.time.total:.3g} s", _seconds(plan.time), "seconds"),
    ]


def _seconds(time: StepTime) -> dict[str, float]:
    """Return the seconds of each part of a step that has any."""
    seconds = {
        "computation": time.compute,
        "messages of the layers": time.layers,
        "messages of the stages": time.pipeline,
        "bubble": time.bubble,
        "sum of the gradients": time.gradients,
        "update of the weights": time.update,
    }
    return {part: spent for part, spent in seconds.items() if spent}


def _attention_facts(matrix: AttentionMatrix) -> Facts:
    pairs = f"all pairs of {matrix.positions:,} positions would take {in_both_units(matrix.whole)}"
    kept = f"the kernel keeps {in_both_units(matrix.kept)}, O(T)"
    return [("attention", f"{pairs} in a layer of all processes, O(T²); {kept}")]


def _published_facts(plan: Plan, published: PublishedModel) -> Facts:
    facts, why = Facts(), f" ({published.source}): {published.difference}"
    if published.parameters:
        facts.append(("published", _beside(published.parameters, plan.parameters) + why))
    if published.multiplications:
        counted = round(plan.step.forward_multiplications)
        unit = f" multiplications of an image forward; counted are {counted:,}"
        facts.append(("published", _beside(published.multiplications, counted, unit) + why))
    if published.lecture:
        facts.append(("lectures", _beside(published.lecture, plan.parameters)))
    if published.training is None:
        facts.append(("training", "the paper does not say how long it was"))
    return facts


def _beside(figure: int, counted: int, unit: str = "") -> str:
    """Return a published figure with its difference from the count."""
    return f"{figure:,}{unit}, {figure / counted - 1:+.1%}"


def _inference_facts(inference: InferenceMemory) -> Facts:
    facts = [(f"weights in {precision}", _gigabytes(size)) for precision, size in inference.weights().items()]
    if not inference.state:
        return facts
    return [
        *facts,
        ("key-value cache", f"{_gigabytes(inference.state)}: {inference.positions:,} positions in 16 bits"),
    ]


def plan_verdict(name: str, plan: Plan) -> str:
    """Return the plan in a line: whether it fits, and the time of a step."""
    size = f"{plan.memory_total / GB:,.1f} of {plan.hardware.memory / GB:,.0f} GB"
    place = f"{name} on {plan.layout.ranks:,} x {plan.hardware.name}"
    if plan.fits:
        return f"{place}: fits ({size}), {plan.time.total:.3g} s a step"
    return f"{place}: does not fit ({size}); try {NOT_FITTING}"


def _processes(plan: Plan) -> str:
    layout = plan.layout
    degrees = {"pp": layout.pp, "dp": layout.dp, "tp": layout.tp}
    text = f"{layout.ranks:,} = " + " x ".join(f"{name} {size}" for name, size in degrees.items())
    text += f"; ep {layout.ep}" if layout.ep > 1 else ""
    text += f"; {layout.virtual_stages} parts of the pipeline in each" if layout.virtual_stages > 1 else ""
    return text + ("; the weights are shared (FSDP)" if layout.fsdp else "")


def _message_facts(plan: Plan) -> Facts:
    meanings = MEANINGS | (OF_SHARED_WEIGHTS if plan.layout.fsdp else {})
    counts: dict[str, tuple[int, int]] = {}
    for message, count in plan.messages.items():
        of_rows = message.group == "dp" and message.phase != "update" and not plan.layout.fsdp
        key = f"{message.collective} {message.group}" + " of norms" * of_rows
        before = counts.get(key, (0, 0))
        counts[key] = (before[0] + count, before[1] + count * message.size)
    return [
        (key, f"{count:,} x, in all {_gigabytes(size)}: {meanings.get(key, '')}")
        for key, (count, size) in counts.items()
    ]


def _assumptions(plan: Plan) -> Facts:
    hardware, part = plan.hardware, plan.utilization
    return [
        ("products", f"{part.products:.0%} of {hardware.half_flops / 1e12:,.0f} TFLOP/s in 16 bits"),
        ("memory", f"{part.memory:.0%} of {hardware.memory_speed / GB:,.0f} GB/s"),
        (
            "links in a node",
            f"{part.links:.0%} of {hardware.link_speed / GB:,.0f} GB/s, {hardware.per_node} devices",
        ),
        ("links between nodes", f"{part.links:.0%} of {hardware.network_speed / GB:,.0f} GB/s for a node"),
        ("source", hardware.source),
    ]


def plan_json(
    plan: Plan, published: PublishedModel | None = None, price: float | None = None
) -> dict[str, Any]:
    """Return the plan for `--json`: bytes, seconds, and tokens a second."""
    more: dict[str, Any] = {"published": published.model_dump(mode="json")} if published else {}
    if trainings := training_json(plan, published, price):
        more |= {"trainings": trainings}
    if published and published.multiplications:
        more |= {"forward_multiplications": plan.step.forward_multiplications}
    if plan.attention:
        matrix = {"bytes": plan.attention.whole, "kept_bytes": plan.attention.kept}
        more |= {"attention_matrix": matrix}
    return more | {
        "parameters": plan.parameters,
        "parameters_per_process": plan.step.parameters.own,
        "layout": asdict(plan.layout) | {"dp": plan.layout.dp},
        "unit": plan.unit,
        "batch_tokens": plan.batch_tokens,
        "micro_batches": plan.step.micro_batches,
        "fits": plan.fits,
        "memory": dict(plan.memory) | {"total": plan.memory_total, "device": plan.hardware.memory},
        "inference": {"weights": plan.inference.weights(), "state": plan.inference.state},
        "messages": [each._asdict() | {"count": count} for each, count in plan.messages.items()],
        "seconds": asdict(plan.time) | {"total": plan.time.total},
        "bubble": plan.bubble,
        "tokens_per_second": plan.tokens_per_second,
        "model_flops": plan.flops,
        "flops_per_token": plan.flops_per_token,
        "model_flop_utilization": plan.model_flop_utilization,
        "hardware": asdict(plan.hardware),
        "utilization": asdict(plan.utilization),
    }


def _gigabytes(size: int) -> str:
    return f"{size / GB:,.3f} GB" if size < GB else f"{size / GB:,.1f} GB"
