"""Corridors to walk along, agents that walk, and the reward of their paths."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.config import DataConfig, ModelConfig
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples
from foveal.data.core.length_buckets import collate_examples
from foveal.data.core.rows import Row
from foveal.data.core.split_data import SplitData
from foveal.data.pairs.pair import PairFormat, PairProcessor
from foveal.data.text.special_tokens import SpecialTokens
from foveal.tasks.navigation.episode_files import episode_fields
from foveal.tasks.navigation.grid_world import MOVES, TILE_PIXELS, VIEW_SIDE, path_poses, render_views
from foveal.tasks.navigation.map_source import MapSource, MovesTarget
from foveal.tasks.navigation.model import FEATURES, NavigationAgent, navigation_agent
from foveal.tasks.navigation.objective import NavigationObjective

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


def encode_episodes(
    *episodes: dict[str, Any], processor: PairProcessor | None = None
) -> tuple[SplitData[Examples], PairProcessor]:
    """Return encoded episodes, with the `processor` of other episodes or their own."""
    config, rows = DataConfig(tokenizer="word"), []
    for number, one in enumerate(episodes):
        fields = episode_fields(dict(one))
        assert not isinstance(fields, str)
        rows.append(Row(f"row {number}", fields))
    processor = processor or MAP_MOVES.make_processor("made", rows, config)
    return MAP_MOVES.encode(rows, processor, config, []), processor


def small_agent(processor: PairProcessor, width: int = 12, mixers: str = "attention-rnn") -> NavigationAgent:
    torch.manual_seed(7)
    reader = {"kind": "text", "mixers": "gru", "layers": 1, "width": width, "embedding_width": 6}
    sizes = {"mixers": mixers, "layers": 1, "width": width, "attention": {"heads": 2}, "encoder": reader}
    config = ModelConfig.model_validate(sizes)
    return navigation_agent(
        config, SpecialTokens(processor.source.size).vocab_size, 64, VIEW_SIDE, TILE_PIXELS, len(MOVES)
    )


def episode_batch(part: SplitData[Examples], times: int = 1) -> ExampleBatch:
    return collate_examples(part.examples, np.arange(len(part)).repeat(times))


class MeanColorEye(nn.Module):
    """An encoder of views: the mean color of some pixels, in every square."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = nn.Linear(3, FEATURES)

    def forward(self, images: Tensor) -> Tensor:
        seen: Tensor = self.seen(images[:, :, ::4, ::4].float().mean((2, 3)) / 127.5 - 1)
        return seen[:, None].expand(-1, VIEW_SIDE**2, -1)


def move_log_probabilities(objective: NavigationObjective, batch: ExampleBatch, moves: Tensor) -> Tensor:
    """Return `log p` of each of the moves (B, T), whose poses are all known in advance."""
    cells, starts = batch.columns["map"], batch.columns["start"]
    poses = [
        path_poses(one.to(torch.int8).numpy(), tuple(start), path)[:-1]
        for one, start, path in zip(cells, starts.tolist(), moves.tolist(), strict=True)
    ]
    before = F.pad(moves[:, :-1], (1, 0), value=len(MOVES))
    memory = objective.encode(batch)
    logits, _ = objective.model(
        render_views(cells, torch.tensor(poses)), before, objective.model.init_state(memory)
    )
    return logits.log_softmax(2).gather(2, moves[:, :, None])[:, :, 0]


MAP_MOVES = PairFormat(MapSource(), MovesTarget())
