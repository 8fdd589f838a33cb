"""Corridors to walk along, models that walk, and what their walks are worth."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.config import DataConfig, ModelConfig
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples
from foveal.data.core.length_buckets import gather
from foveal.data.core.rows import Row
from foveal.data.core.split_data import Part
from foveal.data.text.special_tokens import Marks
from foveal.tasks.navigation import navigation_examples
from foveal.tasks.navigation.episode_files import walk_fields
from foveal.tasks.navigation.grid_world import MOVES, SIDE, TILE, followed, view
from foveal.tasks.navigation.model import FEATURES, Walker, walker
from foveal.tasks.navigation.objective import NavigateTask

CORRIDOR = {
    "map": ["####", "#..#", "####"],
    "instruction": "one step on",
    "start": [1, 1, "east"],
    "path": "forward stop",
}
LONGER = {
    "map": ["#####", "#...#", "#####"],
    "instruction": "two steps on",
    "start": [1, 1, "east"],
    "path": "forward forward stop",
}


def part_of(
    *found: dict[str, Any], inputs: navigation_examples.WalkInputs | None = None
) -> tuple[Part[Examples], navigation_examples.WalkInputs]:
    """Walks as numbers, by the `inputs` of others or by their own."""
    config, rows = DataConfig(tokenizer="word"), []
    for number, one in enumerate(found):
        fields = walk_fields(dict(one))
        assert not isinstance(fields, str)
        rows.append(Row(f"row {number}", fields))
    inputs = inputs or navigation_examples.make_inputs("made", rows, config)
    return navigation_examples.encode(rows, inputs, config, []), inputs


def model_of(inputs: navigation_examples.WalkInputs, width: int = 12, mixers: str = "attentive") -> Walker:
    torch.manual_seed(7)
    reader = {"kind": "text", "mixers": "gru", "layers": 1, "width": width, "embedding": 6}
    sizes = {"mixers": mixers, "layers": 1, "width": width, "attention": {"heads": 2}, "encoder": reader}
    config = ModelConfig.model_validate(sizes)
    return walker(config, Marks(inputs.source.size).vocabulary, 64, SIDE, TILE, len(MOVES))


def batch_of(part: Part[Examples], times: int = 1) -> ExampleBatch:
    return gather(part.examples, np.arange(len(part)).repeat(times))


class Glance(nn.Module):
    """An eye that sees the mean colour of some pixels, in all squares alike."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = nn.Linear(3, FEATURES)

    def forward(self, pictures: Tensor) -> Tensor:
        seen: Tensor = self.seen(pictures[:, :, ::4, ::4].float().mean((2, 3)) / 127.5 - 1)
        return seen[:, None].expand(-1, SIDE**2, -1)


def log_chances(task: NavigateTask, batch: ExampleBatch, moves: Tensor) -> Tensor:
    """`log p` of each of the moves (B, T), all poses being known beforehand."""
    cells, starts = batch.columns["map"], batch.columns["start"]
    poses = [
        followed(one.to(torch.int8).numpy(), tuple(start), path)[:-1]
        for one, start, path in zip(cells, starts.tolist(), moves.tolist(), strict=True)
    ]
    before = F.pad(moves[:, :-1], (1, 0), value=len(MOVES))
    memory = task.read(batch)
    logits, _ = task.model(view(cells, torch.tensor(poses)), before, task.model.start(memory))
    return logits.log_softmax(2).gather(2, moves[:, :, None])[:, :, 0]
