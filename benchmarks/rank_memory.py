"""The memory of weights, gradients and optimizer states on four ranks that share them, over one process.

Each process takes a training step, and then counts the bytes of all tensors that are alive. The command is
`foveal train DATA --model attention model.width=512 model.layers=8 --ranks 4 --fsdp`.
"""

import gc
import os
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks.goldens import write_text
from benchmarks.timing import Measurement, parse_options, report
from foveal.data.open import DataPaths
from foveal.distributed.sharded import ShardedRanks
from foveal.distributed.world import ONE_PROCESS, World
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model
from foveal.training.optim import Optimizer
from foveal.training.slots import Slots
from foveal.training.step import train_step
from tests.support.ranks import run_ranks

RANKS, GOAL = 4, 0.30
SETTINGS = ("model.width=512", "model.layers=8", "data.batch_tokens=512", "data.context_length=64")


def bytes_after_a_step(world: World, folder: Path) -> int:
    """Return the bytes of all tensors of this process after a step."""
    os.environ["FOVEAL_CACHE"] = str(folder / f"cache-{world.rank}")
    sharded = world if world is ONE_PROCESS else ShardedRanks(world.rank, world.size)
    task: Any = task_of(load_config("attention", SETTINGS))
    prepared = task.prepare(DataPaths(str(folder / "text.txt")), lambda line: None)
    task = task.bind(prepared.processor)
    task = task.bind(prepared.processor, build_model(task, torch.device("cpu")))
    gc.collect()
    before = living_bytes() - sum(weight.nbytes for weight in task.model.parameters())
    placement = sharded.place(task.model, lambda: None)
    objective, optimizer = (
        placement.computing(task.objective()),
        Optimizer(task.model, task.config.optimizer, placement),
    )
    batch = task.train_batches(prepared.train).batch(0, 0)
    train_step(
        task.model, objective, optimizer, [batch], [None], lr=1e-3, seed=(0,), slots=Slots(RANKS, sharded)
    )
    del batch
    gc.collect()
    return living_bytes() - before


def living_bytes() -> int:
    """Return the bytes of the storages of all tensors, each once."""
    storages = {}
    for each in gc.get_objects():
        if issubclass(type(each), torch.Tensor) and each.device.type == "cpu":
            local = getattr(each, "_local_tensor", each)
            storage = local.untyped_storage()
            storages[storage.data_ptr() or id(storage)] = storage.nbytes()
            if local.grad is not None:
                storage = getattr(local.grad, "_local_tensor", local.grad).untyped_storage()
                storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def main() -> None:
    options = parse_options(__doc__)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_text(folder)
        whole = bytes_after_a_step(ONE_PROCESS, folder)
        parts = run_ranks(RANKS, bytes_after_a_step, folder)
    title = f"attention, 8 layers of width 512: memory of {RANKS} ranks that share the weights, each over one"
    note = f"{max(parts) / 1e6:,.1f} over {whole / 1e6:,.1f} MB of weights, gradients and optimizer states"
    report([Measurement(title, max(parts) / whole, GOAL, True, [note])], options)


if __name__ == "__main__":
    main()
