"""Decoder heads: a small recurrence, a script, a recorder, and every mixer of the package."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from foveal.config import ModelConfig, PositionConfig
from foveal.core.memory import Memory
from foveal.core.state import State
from foveal.heads.decoder_lm import DecoderLM
from foveal.models.decoder import language_model

V = 7


class SmallRecurrence(nn.Module):
    """A GRU cell in a plain loop, in float64. It writes into the passed state, as mixers may."""

    def __init__(self, vocabulary: int = V, width: int = 8, scale: float = 2.0):
        super().__init__()
        self.embedding, self.cell = nn.Embedding(vocabulary, width), nn.GRUCell(width, width)
        self.output, self.scale = nn.Linear(width, vocabulary), scale
        self.double().eval()

    def init_state(self, memory: Memory | None, batch: int, capacity: int | None = None) -> State:
        h = torch.zeros(batch, self.cell.hidden_size, dtype=torch.float64)
        return {"h": h if memory is None else memory.summary.clone()}

    def forward(
        self, tokens: Tensor, state: State, lengths: Tensor | None = None
    ) -> tuple[Tensor, State, dict[str, Tensor]]:
        h, steps = state["h"], []
        for t in range(tokens.shape[1]):
            new = self.cell(self.embedding(tokens[:, t]), h)
            h.copy_(new if lengths is None else torch.where((t < lengths)[:, None], new, h))
            steps.append(h.clone())
        features = torch.stack(steps, 1)
        if lengths is not None:
            features[torch.arange(tokens.shape[1]) >= lengths[:, None]] = 0
        return features, state, {}

    def project(self, features: Tensor) -> Tensor:
        return self.scale * self.output(features)


class ScriptedHead(nn.Module):
    """Returns logits by the number of tokens read: row n of `table` (N, V), later the last row."""

    def __init__(self, table: Tensor):
        super().__init__()
        self.table = nn.Parameter(table.double(), requires_grad=False)

    @classmethod
    def saying(cls, tokens: Sequence[int], vocabulary: int) -> "ScriptedHead":
        """Return a head that generates `tokens` after a prompt of one token."""
        return cls(9.0 * torch.eye(vocabulary)[[0, *tokens]])

    def init_state(self, memory: Memory | None, batch: int, capacity: int | None = None) -> State:
        return {"read": torch.zeros(batch, dtype=torch.long)}

    def forward(
        self, tokens: Tensor, state: State, lengths: Tensor | None = None
    ) -> tuple[Tensor, State, dict[str, Tensor]]:
        B, T = tokens.shape
        read = state["read"][:, None] + torch.arange(1, T + 1)
        added = torch.full((B,), T) if lengths is None else lengths
        return self.table[read.clamp(max=len(self.table) - 1)], {"read": state["read"] + added}, {}

    def project(self, features: Tensor) -> Tensor:
        return features


class RecordingHead(nn.Module):
    """Wraps another head, and records the shapes of tokens and state of each call."""

    def __init__(self, head: Any):
        super().__init__()
        self.head, self.init_state, self.project = head, head.init_state, head.project
        self.calls: list[tuple[tuple[int, ...], int]] = []

    def forward(
        self, tokens: Tensor, state: State, lengths: Tensor | None = None
    ) -> tuple[Tensor, State, dict[str, Tensor]]:
        size = sum(leaf.numel() for leaf in state.values() if isinstance(leaf, Tensor)) if state else 0
        self.calls.append((tuple(tokens.shape), size))
        return self.head(tokens, state, lengths)


def mixer_head(mixers: str, window: int = 0, positions: str = "none") -> Callable[[], DecoderLM]:
    def make() -> DecoderLM:
        config = ModelConfig(
            mixers=mixers,
            layers=2,
            width=8,
            norm="rms",
            residual=True,
            attention={"heads": 2, "window": window},
            positions=PositionConfig(kind=positions),
        )
        head = language_model(config, V, context=64).double().eval()
        with torch.no_grad():
            for parameter in head.parameters():
                parameter.normal_(std=0.5)
        return head

    return make


HEADS: dict[str, Callable[[], Any]] = {
    "recurrence": SmallRecurrence,
    "rnn": mixer_head("rnn"),
    "lstm": mixer_head("lstm"),
    "gru": mixer_head("gru"),
    "attention": mixer_head("attention"),
    "attention-rotary": mixer_head("attention", positions="rotary"),
    "attention-learned": mixer_head("attention", positions="learned"),
    "attention-window": mixer_head("attention", window=4, positions="sinusoidal"),
    "hybrid": mixer_head("lstm,attention", positions="rotary"),
}


def next_log_probabilities(head: Any, tokens: Sequence[int]) -> Tensor:
    """Return the log-probabilities (V,) by reading the whole text again, as reference for every
    faster way."""
    with torch.no_grad():
        features, _, _ = head(torch.tensor([list(tokens)]), head.init_state(None, 1))
        return head.project(features[0, -1]).double().log_softmax(-1)
