"""Without residual connections too, a gradient reaches the first layer from the first step on."""

from typing import Any

import pytest
import torch

from foveal.config import ModelConfig
from foveal.layers.mixers.registry import mixer_specs
from foveal.models.decoder import language_model

MIXERS = [name for name, spec in mixer_specs().items() if not spec.reads_memory]


@pytest.mark.parametrize(
    "settings",
    [
        *({"mixers": name} for name in MIXERS),
        *({"feedforward": name} for name in ("mlp", "swiglu", "highway", "moe", "channel-mixing")),
    ],
    ids=str,
)
def test_the_first_layer_gets_a_gradient(settings: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model: Any = language_model(ModelConfig(width=8, layers=2, residual=False, **settings), 5, 16)
    tokens = torch.randint(5, (2, 12))
    model.stack(model.embedding(tokens))[0].sin().sum().backward()
    assert model.embedding.table.grad.abs().max() > 0
