"""The example models of the three ways of processing sequences are what they say."""

from pathlib import Path
from typing import Any

import pytest
import torch

from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of

MODELS = sorted(Path(__file__).parents[1].glob("examples/three-ways/*/*.toml"))
WAYS = ["attention", "convolution", "recurrence", "state-space"]


def test_both_tasks_have_a_model_of_each_way():
    assert [(path.parent.name, path.stem) for path in MODELS] == [
        (task, way) for task in ("memory", "translation") for way in WAYS
    ]


def encoder_of(path: Path) -> Any:
    return task_of(load_config(str(path), ())).example_model().eval().encoder


@pytest.mark.parametrize("path", MODELS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_models_of_memory_read_from_left_to_right_and_translations_to_both_sides(path):
    torch.manual_seed(0)
    encoder = encoder_of(path)
    tokens = torch.randint(50, (1, 9))
    changed = torch.cat([tokens[:, :5], tokens[:, 5:] + 1], 1)
    with torch.no_grad():
        before, after = (encoder(each, None)[0].vectors[:, :5] for each in (tokens, changed))
    assert torch.equal(before, after) == (path.parent.name == "memory")


def test_the_convolution_of_memory_sees_31_words():
    encoder = encoder_of(MODELS[1])
    tokens = torch.randint(50, (1, 40))
    changed = torch.cat([tokens[:, :1] + 1, tokens[:, 1:]], 1)
    with torch.no_grad():
        before, after = (encoder(each, None)[0].vectors[0] for each in (tokens, changed))
    assert (before != after).any(1).nonzero().flatten().tolist() == [*range(31)]
