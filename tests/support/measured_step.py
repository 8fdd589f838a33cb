"""The memory of a real process in a training step, as torch's allocator counts it."""

import json
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

from foveal.config import Config
from foveal.distributed.experts import ExpertRanks
from foveal.distributed.mesh import MeshRanks
from foveal.distributed.pipeline.ranks import PipelineRanks
from foveal.distributed.sharded import ShardedRanks
from foveal.distributed.world import World
from foveal.studies.plan.layout import Layout
from foveal.studies.plan.planned_model import rows_of_micro_batch, sized_task
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model
from foveal.training.dry_run import compute_row
from foveal.training.optim import Optimizer
from foveal.training.slots import Slots
from foveal.training.step import train_step

SIZES = {"vocabulary": 512, "classes": 10}
STEPS = 5


def measured_task(config: Config) -> Any:
    """Return the task of a config, whose model is measured."""
    task = task_of(config)
    return sized_task(task, {size: SIZES[size] for size in task.model_sizes or ()})


def measured_peak(world: World, preset: str, settings: tuple[str, ...], layout: Layout) -> int:
    """Return the largest number of bytes that a process of a layout holds in a step after the first."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profiled:
        _take_steps(_arranged(world, layout), load_config(preset, settings), layout)
    return _peak(profiled)


def _arranged(world: World, layout: Layout) -> World:
    if layout.pp > 1:
        return PipelineRanks(world.rank, world.size, layout.pp, layout.virtual_stages, layout.tp)
    if layout.ep > 1:
        return ExpertRanks(world.rank, world.size, layout.ep, layout.tp)
    if layout.tp > 1:
        return MeshRanks(world.rank, world.size, layout.tp)
    return ShardedRanks(world.rank, world.size) if layout.fsdp else world


def _take_steps(world: World, config: Config, layout: Layout) -> None:
    task = measured_task(config)
    model: nn.Module = build_model(task, torch.device("cpu"))
    task = task.bind(task.processor, model)
    # Stages take the slots of a batch in turn.
    micro_batches, slots = (1, layout.micro_batches) if layout.pp > 1 else (layout.micro_batches, 1)
    batch = task.longest_batch(rows_of_micro_batch(task, Layout(micro_batches=micro_batches)))
    precision = config.training.precision
    batches = SimpleNamespace(batch=lambda epoch, index: batch)
    placement = world.place(model, partial(compute_row, model, task.objective(), batches, precision))
    objective = placement.computing(task.objective())
    optimizer = Optimizer(model, config.optimizer, placement)
    for step in range(STEPS):
        with record_function(f"step {step}"):
            train_step(
                model,
                objective,
                optimizer,
                [batch] * micro_batches,
                [None] * micro_batches,
                lr=1e-3,
                seed=(step,),
                precision=precision,
                slots=Slots(world.size * slots, world),
                activation_checkpointing=config.training.activation_checkpointing,
            )


def _peak(profiled: Any) -> int:
    """Return the smallest peak of the steps after the first, from the trace of all allocations.

    All of them hold the same, and may be counted too high: the profiler does not see what the threads of gloo
    free. That a tensor was freed is seen at the latest when another one lies in its place.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiled.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    starts = sorted(event["ts"] for event in events if str(event.get("name")).startswith("step "))
    peaks = [0] * len(starts)
    for time, held in _held(event for event in events if event.get("name") == "[memory]"):
        if step := bisect_right(starts, time):
            peaks[step - 1] = max(peaks[step - 1], held)
    return min(peaks[1:])


def _held(events: Iterable[dict[str, Any]]) -> Iterator[tuple[float, int]]:
    """Yield the time of each allocation, and the bytes that are held then."""
    sizes, addresses, held = dict[int, int](), list[int](), 0
    for event in sorted(events, key=lambda event: event["ts"]):
        address, size = event["args"]["Addr"], event["args"]["Bytes"]
        first, end = bisect_left(addresses, address), bisect_left(addresses, address + max(size, 1))
        if first and addresses[first - 1] + sizes[addresses[first - 1]] > address:
            first -= 1
        held -= sum(sizes.pop(freed) for freed in addresses[first:end])
        addresses[first:end] = [address] if size > 0 else []
        if size > 0:
            sizes[address] = size
            held += size
        yield event["ts"], held
