"""A copy of the state of a training between two steps, which is written while the training goes on.

Where ranks share the weights, each writes its parts. Where each has all weights, they take turns with the
groups of tensors. So all write at once, and nobody holds what others write.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from foveal.core.state import State, pack
from foveal.core.stored_tensor import Box
from foveal.distributed.placement import Placement
from foveal.distributed.world import World
from foveal.store.durable import Chunk
from foveal.store.sealed import seal_json, sealed_chunks
from foveal.store.stored_tensors import PARTS_KEY
from foveal.training.placed_weights import Held, held_weights
from foveal.training.snapshot import (
    AVERAGE,
    BEST_FILE,
    CARRY,
    OPTIMIZER,
    PLACE,
    PLACE_FILE,
    WEIGHTS,
    TrainingState,
    state_facts,
)


@dataclass(frozen=True)
class TensorFile:
    """The tensors of a file, and what its header says about them."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any] = field(default_factory=dict)

    def sealed(self) -> list[Chunk]:
        """Return the content of the file."""
        return sealed_chunks(self.tensors, self.facts)


@dataclass(frozen=True)
class StateCopy:
    """What a process writes of a checkpoint: the content of files by name."""

    facts: dict[str, dict[str, Any]]
    tensors: dict[str, TensorFile]

    def files(self, best: Sequence[Chunk] | None) -> Iterator[tuple[str, Sequence[Chunk]]]:
        """Yield the names and contents of the files. `best` are the best weights so far, for those who write
        them."""
        for name, facts in self.facts.items():
            yield name, [seal_json(facts)]
        for name, file in self.tensors.items():
            yield name, file.sealed()
        if best:
            yield BEST_FILE, best


def copy_of(value: Tensor) -> Tensor:
    """Return a copy in the memory of the CPU."""
    return value.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)


def copied(tensors: Mapping[str, Tensor]) -> TensorFile:
    """Return a file of copies."""
    return TensorFile({name: copy_of(value) for name, value in tensors.items()})


def copy_state(
    training: TrainingState,
    model: nn.Module,
    placement: Placement,
    world: World,
    run: str,
    carries: list[State],
) -> StateCopy:
    """Return a copy of what this process writes of the state. `run` is the fingerprint of the run. `carries`
    are those of all rows."""
    held = {WEIGHTS: held_weights(model, placement), OPTIMIZER: training.optimizer.state()}
    if training.average is not None:
        held[AVERAGE] = training.average.state()
    files = dict[str, TensorFile]()
    for number, (group, values) in enumerate(held.items()):
        if placement.is_whole and number % world.processes == world.process:
            files[f"{group}.safetensors"] = copied({name: value for name, (value, _) in values.items()})
        elif not placement.is_whole and placement.writes:
            files[f"{group}-{placement.part}.safetensors"] = _own_parts(values, placement)
    if not world.is_main:
        return StateCopy({}, files)
    tensors, skeleton = pack(carries)
    files[f"{CARRY}.safetensors"] = copied(tensors)
    facts = {"state.json": state_facts(training, run, skeleton)}
    if training.batches:
        tensors, place = pack(training.batches.place(training.position))
        files[f"{PLACE}.safetensors"] = copied(tensors)
        facts[PLACE_FILE] = {"place": place}
    return StateCopy(facts, files)


def _own_parts(held: Held, placement: Placement) -> TensorFile:
    """Return copies of the parts that this process has, and of the whole values that it writes."""
    tensors, boxes = dict[str, Tensor](), dict[str, Box]()
    for name, (value, own) in held.items():
        box = None if own is None else placement.box(value, own)
        if box is None and placement.part == 0:
            tensors[name] = copy_of(value)
        elif box is not None and own is not None and placement.counts(own) and value.numel():
            tensors[name], boxes[name] = copy_of(value), box
    return TensorFile(tensors, {PARTS_KEY: boxes})
