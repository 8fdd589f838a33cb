"""The memory of a real process in a training step, as torch's allocator counts it."""

import json
import tempfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

from foveal.config import Config
from foveal.data.core.batching import TokenBatch
from foveal.distributed.mesh import MeshRanks
from foveal.distributed.sharded import ShardedRanks
from foveal.distributed.world import World
from foveal.studies.plan.layout import Layout
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model
from foveal.training.dry_run import compute_row
from foveal.training.optim import Optimizer
from foveal.training.slots import Slots
from foveal.training.step import train_step

VOCABULARY = 512


def measured_peak(world: World, preset: str, settings: tuple[str, ...], layout: Layout) -> int:
    """Return the largest number of bytes that a process of a layout holds in its second step."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profiled:
        _two_steps(_arranged(world, layout), load_config(preset, settings), layout)
    return _peak(profiled)


def _arranged(world: World, layout: Layout) -> World:
    if layout.tp > 1:
        return MeshRanks(world.rank, world.size, layout.tp)
    return ShardedRanks(world.rank, world.size) if layout.fsdp else world


def _two_steps(world: World, config: Config, layout: Layout) -> None:
    task: Any = task_of(config)
    task = task.bind(task.sized_processor({"vocabulary": VOCABULARY}))
    model: nn.Module = build_model(task, torch.device("cpu"))
    task = task.bind(task.processor, model)
    rows = config.data.batch_tokens // config.data.context_length // layout.micro_batches
    tokens = torch.randint(VOCABULARY, (rows, config.data.context_length))
    batch, precision = TokenBatch(tokens, tokens), config.training.precision
    batches = SimpleNamespace(batch=lambda epoch, index: batch)
    placement = world.place(model, partial(compute_row, model, task.objective(), batches, precision))
    objective = placement.computing(task.objective())
    optimizer = Optimizer(model, config.optimizer, placement)
    for step in range(2):
        with record_function(f"step {step}"):
            train_step(
                model,
                objective,
                optimizer,
                [batch] * layout.micro_batches,
                [None] * layout.micro_batches,
                lr=1e-3,
                seed=(step,),
                precision=precision,
                slots=Slots(world.size, world),
                activation_checkpointing=config.training.activation_checkpointing,
            )


def _peak(profiled: Any) -> int:
    """Return the peak since the beginning of the second step, from the trace of all allocations."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiled.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    start = next(event["ts"] for event in events if event.get("name") == "step 1")
    held = peak = 0
    for event in sorted((one for one in events if one.get("name") == "[memory]"), key=lambda one: one["ts"]):
        held += event["args"]["Bytes"]
        if event["ts"] >= start:
            peak = max(peak, held)
    return peak
