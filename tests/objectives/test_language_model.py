"""The language task: its loss, its weights, what it carries, what it refuses."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from foveal.core.errors import UserError
from foveal.data.core.batching import TokenBatch
from foveal.data.text.tokenizers import CharacterTokenizer
from foveal.heads.decoder_lm import DecoderLM
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.embedding import Embedding
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import LSTMCell
from foveal.layers.mixers.self_attention import SelfAttention
from foveal.objectives.language_model import LanguageModelObjective

B, T, D = 3, 5, 8
TEXT = "abcéü"


def task(mixer: torch.nn.Module | None = None, **settings) -> LanguageModelObjective:
    model = DecoderLM(Embedding(5, D), Stack([Block(mixer or Recurrent(LSTMCell(D, D)))]), D).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.8, 0.8)
    return LanguageModelObjective(
        model, CharacterTokenizer(TEXT), settings.pop("carry_state", False), **settings
    )


def tokens(lengths: list[int] | None = None) -> TokenBatch:
    ids = torch.randint(5, (B, T + 1))
    return TokenBatch(ids[:, :-1], ids[:, 1:], lengths=None if lengths is None else torch.tensor(lengths))


def nats(found: LanguageModelObjective, batch: TokenBatch) -> Tensor:
    """`-log p` of every target (B, T), row by row, token by token."""
    losses = torch.zeros(B, T, dtype=torch.float64)
    with torch.no_grad():
        for b in range(B):
            for t in range(T):
                features, _, _ = found.model(batch.inputs[b : b + 1, : t + 1])
                chances = found.model.project(features[0, -1]).softmax(-1)
                losses[b, t] = -chances[batch.targets[b, t]].log()
    return losses


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("lengths", [None, [T, 2, 0]])
@pytest.mark.parametrize(
    ("settings", "where", "rows"),
    [
        ({}, "all", False),
        ({"reduction": "sum"}, "all", True),
        ({"loss_positions": "last"}, "last", True),
    ],
)
def test_loss(lengths, settings, where, rows):
    """Summed over the positions that count; its weight is the number of them, or of rows."""
    found, batch = task(**settings), tokens(lengths)
    ends = lengths or [T] * B
    counted = [(b, t) for b, n in enumerate(ends) for t in range(n) if where == "all" or t == n - 1]
    each = nats(found, batch)
    result, carry = found(batch, None)
    expected = torch.stack([each[place] for place in counted]).sum()
    close(result.terms["loss"].sum.detach(), expected)
    assert result.terms["loss"].weight == found.weights(batch)["loss"] == (B if rows else len(counted))
    total, weight = result.metrics["loss"]
    assert total == pytest.approx(float(expected))
    assert weight == len(counted)
    assert carry is None


def test_bits_per_character():
    """Bits over characters, whatever bytes they are made of."""
    found, batch = task(), tokens()
    result, _ = found(batch, None)
    bits, characters = result.metrics["bits_per_character"]
    assert characters == B * T
    assert bits == pytest.approx(result.metrics["loss"][0] / math.log(2))


def test_carry():
    """Two chunks with the state carried equal one; the start has the gradient of a learned state."""
    found: Any
    found, batch = task(Recurrent(LSTMCell(D, D), learned_start=True), carry_state=True), tokens()
    whole, _ = found(batch, found.start(batch))
    state, total = found.start(batch), torch.zeros((), dtype=torch.float64)
    for part in (slice(0, 2), slice(2, T)):
        result, state = found(TokenBatch(batch.inputs[:, part], batch.targets[:, part]), state)
        total = total + result.terms["loss"].sum
    close(total, whole.terms["loss"].sum)
    total.backward()
    start: Any = found.model.stack.blocks[0].mixer.start
    assert all(part.grad is not None for part in start.values())
    assert all(part.grad.ne(0).any() for part in start.values())
    assert task().start(batch) is None


def test_attention_without_a_window_is_not_carried():
    with pytest.raises(UserError, match=r"task\.batching=windows"):
        task(SelfAttention(D, 2), carry_state=True)
    task(SelfAttention(D, 2, window=3, rotary=True), carry_state=True)
