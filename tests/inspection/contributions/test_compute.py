"""Contributions of a model that copies, of sources that are not read, and of prompts."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal.config import ModelConfig
from foveal.core.memory import Memory, Segment
from foveal.data.core.batching import ExampleBatch
from foveal.data.text.tokenizers import CharacterTokenizer
from foveal.inspection.contributions.compute import (
    Parts,
    baseline,
    contributions,
    frame_parts,
    log_probabilities,
    patch_parts,
    prompt_contributions,
    source_contributions,
    token_parts,
    unknown_token,
)
from foveal.inspection.text_writer import TextWriter
from foveal.layers.embedding import OneHot
from foveal.models.decoder import language_model
from foveal.models.encoder import EncoderWithHead
from tests.support.decoder_heads import HEADS, V, next_log_probabilities

SHARPNESS = 9.0
TOKENIZER = CharacterTokenizer("abcdefg")


class OneHotEncoder(nn.Module):
    """Token `t` of the source is vector `t` of the memory; the last one is left out."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = OneHot(V)
        self.unused = nn.Parameter(torch.zeros(1))

    def forward(self, tokens: Tensor, lengths: Tensor | None) -> tuple[Memory, dict[str, Tensor]]:
        vectors = self.embedding(tokens)[:, :-1]
        mask = torch.ones(vectors.shape[:2], dtype=torch.bool)
        segment = Segment(0, vectors.shape[1], "tokens")
        return Memory(vectors, mask, vectors.mean(1), (segment,)), {}


class CopyHead(nn.Module):
    """Writes the vector of the memory at its own position."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(1))

    def init_state(self, memory: Memory | None, batch: int, capacity: int | None = None) -> Any:
        assert memory is not None
        return {"vectors": memory.vectors, "read": 0}

    def forward(self, tokens: Tensor, state: Any, lengths: Tensor | None = None) -> Any:
        read, count = state["read"], tokens.shape[1]
        return state["vectors"][:, read : read + count], state | {"read": read + count}, {}

    def project(self, features: Tensor) -> Tensor:
        return SHARPNESS * features


def test_a_copy_has_the_identity() -> None:
    """Token i is known with its source and uniform without; the last source token is not read."""
    model, source = EncoderWithHead(OneHotEncoder(), CopyHead()), [3, 1, 4, 1, 5]
    batch = ExampleBatch(
        torch.arange(1), {"source": torch.tensor([source])}, {"source": torch.tensor([5])}, torch.tensor([5])
    )
    writer = TextWriter(model.head, (0,), 4, TOKENIZER)
    values, parts = source_contributions(model, writer, batch, [*"dbebf"], source[:4])
    known = SHARPNESS - math.log(math.exp(SHARPNESS) + V - 1)
    expected = torch.zeros(4, 5, dtype=torch.float64)
    expected[:, :4] = torch.eye(4) * (known + math.log(V))
    assert torch.allclose(values, expected, atol=1e-6)
    assert (values[:, 4] == 0).all(), "what is not read contributes exactly nothing"
    assert parts.names == tuple("dbebf")


@pytest.mark.parametrize("kind", ["lstm", "attention-rotary"])
def test_prompts_are_read_with_the_mean_of_all_vectors(kind: str) -> None:
    """The base is the text read token by token; a replaced token has the mean vector, by hand."""
    head, prompt, tokens = HEADS[kind](), (1, 2, 5), (3, 0)
    writer = TextWriter(head, prompt, 2, TOKENIZER)
    values, _ = prompt_contributions(writer, tokens)
    base = [
        float(next_log_probabilities(head, [*prompt, *tokens[:t]])[token]) for t, token in enumerate(tokens)
    ]
    scores = log_probabilities(writer, torch.tensor([prompt]), None, tokens)[0]
    assert scores.tolist() == pytest.approx(base, abs=1e-12)
    for part in range(3):
        vectors = head.embedding(torch.tensor([[*prompt, tokens[0]]])).clone()
        vectors[0, part] = head.embedding.table.mean(0)
        with torch.no_grad():
            features = head.norm(head.stack(vectors, head.init_state(None, 1))[0])
            by_hand = head.project(features[0, 2:]).log_softmax(1)
        expected = [base[t] - float(by_hand[t, token]) for t, token in enumerate(tokens)]
        assert values[:, part].tolist() == pytest.approx(expected, abs=1e-12)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in head.modules())


def test_a_lookup_has_not_read_an_unknown_token() -> None:
    config = ModelConfig(mixers="lstm", width=8, norm="rms", ngram_lookup=4)
    head = language_model(config, V, 32).double().eval()
    prompt = (1, 2, 3, 1, 2, 3, 1, 2)
    values, _ = prompt_contributions(TextWriter(head, prompt, 1, TOKENIZER), (3,))
    assert values.isfinite().all()
    assert head.lookup is not None
    followers = list[torch.Tensor]()
    handle = head.lookup.register_forward_hook(lambda _, inputs, output: followers.append(inputs[0]))
    with torch.no_grad(), unknown_token(head, head.embedding):
        head(torch.tensor([[1, 2, V, 1, 2]]))
    handle.remove()
    assert followers[0][0, -1].tolist() == [0, 0, 0], "after 1, 2 stood something unknown"


def test_many_parts_have_one_base() -> None:
    """Batches of parts give what each part alone gives."""
    source, weights = torch.randn(1, 50), torch.randn(50, 2)
    parts = Parts("frames", [(slice(t, t + 1),) for t in range(50)], tuple(map(str, range(50))))
    values = contributions(lambda rows: rows @ weights, source, parts, torch.zeros(1, 50))
    assert torch.allclose(values, (source[0][:, None] * weights).T, atol=1e-5)


def test_blocks_cover_the_source_once() -> None:
    for parts, shape in (
        (frame_parts([f"{t}" for t in range(101)]), (101, 2)),
        (patch_parts(10, 7, (4, 9)), (3, 10, 7)),
        (patch_parts(3, 3, None), (1, 3, 3)),
        (token_parts(["a"]), (1,)),
    ):
        covered = torch.zeros(shape)
        for place in parts.slices:
            covered[place] += 1
        assert (covered == 1).all()
        assert len(parts.names) == len(parts.slices)
    assert len(token_parts(["a"] * 500).slices) == 64


def test_baselines() -> None:
    image = torch.arange(12.0).view(1, 3, 2, 2)
    assert baseline(image, patch_parts(2, 2, None), 0)[0, :, 0, 1].tolist() == [1.5, 5.5, 9.5]
    frames = torch.tensor([[[0.0, 2.0], [4.0, 6.0]]])
    assert baseline(frames, frame_parts(["0", "1"]), 0)[0, 1].tolist() == [2.0, 4.0]
    assert baseline(torch.tensor([[1, 2]]), token_parts(["a", "b"]), V).tolist() == [[V, V]]
