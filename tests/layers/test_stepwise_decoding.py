"""Generation's own paths: one position at a time, without gradients, equals the whole sequence at once."""

from typing import Any

import pytest
import torch

from foveal.heads.decoder_lm import DecoderLM
from foveal.layers.mixers.registry import mixer_specs
from foveal.models.decoder import language_model
from foveal.ops.jit.dispatch import record_paths
from foveal.tasks.config import from_tables

V, T = 11, 9


def model(mixer: str, **settings: object) -> DecoderLM:
    """Two layers of width 32, which the kernels' vectors divide, with weights large enough to matter."""
    table = {"mixers": mixer, "width": 32, "attention": {"heads": 2}, "s5": {"state_size": 8}, **settings}
    made = language_model(from_tables({"model": table}).model, V, 64).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return made


MODELS: dict[str, dict[str, Any]] = {
    name: {} for name, spec in mixer_specs().items() if not spec.reads_memory
} | {
    "attention": {"positions": {"kind": "rotary"}, "feedforward": "swiglu"},
    "attention,rwkv": {"feedforward": "channel-mixing", "norm": "layer", "residual": True},
    "lstm,attention": {"feedforward": "moe", "positions": {"kind": "learned"}},
    "gru": {"feedforward": "highway", "gru": {"reset_after": False}},
}


@pytest.mark.parametrize("rows", [1, 3, 20])
@pytest.mark.parametrize("mixer", list(MODELS))
@torch.no_grad()
def test_one_by_one(mixer, rows):
    """From a start with room for all, from one with room for some, and from none."""
    head = model(mixer, **MODELS[mixer])
    tokens = torch.randint(V, (rows, T))
    expected = head.project(head(tokens)[0])
    for state in (head.init_state(None, rows, T), head.init_state(None, rows, 3), None):
        logits = []
        with record_paths() as ran:
            for token in tokens.split(1, 1):
                features, state, _ = head(token, state)
                logits.append(head.project(features))
        assert ("linear:few_vectors" in ran) == (rows <= 8)
        if "attention" in mixer:
            assert "attention:cached" in ran
        torch.testing.assert_close(torch.cat(logits, 1), expected, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_rows_of_different_lengths():
    """After ragged prompts every row writes into its own slot and sees its own text."""
    head = model("attention", feedforward="mlp", positions={"kind": "rotary"})
    prompts, lengths = torch.randint(V, (3, 6)), torch.tensor([6, 2, 4])
    _, state, _ = head(prompts, head.init_state(None, 3, 12), lengths)
    more = torch.randint(V, (3, 4))
    features = []
    for token in more.split(1, 1):
        y, state, _ = head(token, state)
        features.append(y)
    for row, length in enumerate(lengths.tolist()):
        text = torch.cat([prompts[row, :length], more[row]])[None]
        alone = head(text)[0][:, length:]
        torch.testing.assert_close(torch.cat(features, 1)[row], alone[0], rtol=1e-4, atol=1e-4)
