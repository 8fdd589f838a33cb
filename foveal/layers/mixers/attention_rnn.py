"""A recurrent decoder over a memory: it looks anew at every step, or has one summary, once or always."""

import math
from collections.abc import Callable
from typing import Literal, cast

import torch
from jaxtyping import Bool, Float, Int
from pydantic import model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.config.values import StrictModel
from foveal.core.memory import Memory
from foveal.core.state import State
from foveal.core.tap import TappedModule
from foveal.layers.linear import Linear
from foveal.layers.mixers.base import StateShapes, check_input
from foveal.layers.mixers.memory_checks import memory_tensors, require_state
from foveal.layers.mixers.recurrent import GRU, LSTM, Elman, Recurrent
from foveal.layers.mixers.registry import MixerPlace, MixerSpec, register_mixer
from foveal.ops.attention.additive import additive_attention
from foveal.ops.attention.dot_product import masked_softmax
from foveal.ops.attention.hard_attention import sample_position
from foveal.ops.attention.step_by_step import (
    additive_scores,
    dot_scores,
    scaled_dot_scores,
    weighted_sum,
)
from foveal.ops.linear import linear
from foveal.ops.padding import zero_padding
from foveal.ops.recurrent.cells import run_recurrence

MEMORY_KEYS = ("memory_keys", "memory_values", "memory_mask")
SUMMARY_KEY, SAMPLED_KEY = "memory_summary", "drawn"
CELLS = {"rnn": Elman, "lstm": LSTM, "gru": GRU}
AttentionScore = Literal["initial-state", "every-step", "additive", "dot", "scaled-dot", "general"]
AttendFunction = Callable[[Tensor], Tensor]
"""A cell's h (B, D) to the context (B, M)."""


class AdditiveScore(nn.Module):
    """`e_i = v . tanh(W s + k_i)` with keys `k_i = U h_i + b` (Bahdanau et al. 2015).

    All weights start uniform in +-1/sqrt(what they read), the bias at zero.
    """

    def __init__(self, width: int, memory_width: int):
        super().__init__()
        self.query = Linear(width, width, bias=False)
        self.key = Linear(memory_width, width)
        self.weight = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _init_linear(self.query, self.key)
        bound = 1 / math.sqrt(len(self.weight))
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, s: Float[Tensor, "*B D"], keys: Float[Tensor, "*#B S D"]) -> Float[Tensor, "*B S"]:
        return additive_scores(self.query(s), keys, self.weight)

    def attend_function(
        self,
        keys: Float[Tensor, "B S D"],
        values: Float[Tensor, "B S M"],
        mask: Bool[Tensor, "B S"],
        steps: int,
    ) -> AttendFunction:
        """For so many steps to come."""
        context_of = additive_attention(keys, self.weight, values, mask, steps)
        return lambda s: context_of(self.query(s))


class DotProductScore(nn.Module):
    """A product of `s` and each key: a vector of the memory, or `W h_i` (Luong et al. 2015)."""

    def __init__(self, key: nn.Module, score_function: Callable[[Tensor, Tensor], Tensor]):
        super().__init__()
        self.key, self.score_function = key, score_function
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _init_linear(*self.children())

    def forward(self, s: Float[Tensor, "*B D"], keys: Float[Tensor, "*#B S D"]) -> Float[Tensor, "*B S"]:
        return self.score_function(s, keys)

    def attend_function(
        self,
        keys: Float[Tensor, "B S D"],
        values: Float[Tensor, "B S M"],
        mask: Bool[Tensor, "B S"],
        steps: int,
    ) -> AttendFunction:
        """As `AdditiveScore.attend_function`; any number of steps is alike."""
        return lambda s: weighted_sum(masked_softmax(self(s, keys), mask), values)


class AttentionRNN(TappedModule):
    """A recurrent cell whose input is joined by a context: `s_t = cell([x_t; c_t], s_(t-1))`.

    The context is the mean of the memory's vectors `h_i` by weights that depend on the state before:
    `c_t = sum_i a_ti h_i`, `a_t = softmax(e_t)`, and the score `e_ti` of s = s_(t-1), a cell's h, is

    * additive: `v . tanh(W s + U h_i + b)` (Bahdanau et al. 2015, A.1.2);
    * dot: `s . h_i`, for equal widths (Luong et al. 2015, 3.1);
    * general: `s . W h_i` (there); scaled: the same over `sqrt(width)` (Vaswani et al. 2017, 3.2.1).

    *hard* attention looks at one place instead: `c_t = h_i`, in training drawn with the chance a_ti, else the
    likeliest (Xu et al. 2015, 4.1). The state says what was `drawn` (B, 2) so far: the sums of log a_ti of
    the places and of the entropies of the a_t, of which the task makes a loss.

    In all of them `s_0 = tanh(W summary + b)`, an LSTM's cells start at zero. Two do not look, the bottleneck
    that attention widens: for *summary* c_t is the memory's summary at every step (Cho et al. 2014), and
    *first* has no c_t, so s_0 is all that is known of the memory (Sutskever et al. 2014).

    State: the cell's, and what stays as it is: `memory_keys` (B, S, width), made once, the memory's vectors
    as `memory_values` (B, S, M), `memory_mask` (B, S); or `memory_summary` (B, M); or nothing, for *first*.
    """

    bounded = True
    attends_to_memory = True

    def __init__(
        self,
        cell: Literal["rnn", "lstm", "gru"],
        d_in: int,
        width: int,
        memory_width: int,
        score: AttentionScore,
        hard: bool = False,
    ):
        super().__init__()
        self.d_in, self.d_out, self.hard = d_in, width, hard
        joined = 0 if score == "initial-state" else memory_width
        self.recurrent = Recurrent(CELLS[cell](d_in + joined, width))
        self.first = Linear(memory_width, width)
        self.score = _make_score(score, width, memory_width)
        given: StateShapes = {} if score == "initial-state" else {SUMMARY_KEY: (memory_width,)}
        if self.score is not None:
            sizes = (-1, width), (-1, memory_width), (-1,)
            given = dict(zip(MEMORY_KEYS, sizes, strict=True)) | ({SAMPLED_KEY: (2,)} if hard else {})
        self.shapes: StateShapes = {**self.recurrent.shapes, **given}
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The cell's and the score's own; W of s_0 uniform in +-1/sqrt(memory_width), its bias zero."""
        self.recurrent.reset_parameters()
        _init_linear(self.first)
        if self.score is not None:
            self.score.reset_parameters()

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        vectors, mask = memory_tensors(memory, batch)
        assert memory is not None
        start = self.recurrent.init_state(batch)
        start["h"] = self.first(memory.summary).tanh().to(start["h"].dtype)
        if self.score is None:
            return start | ({SUMMARY_KEY: memory.summary.clone()} if SUMMARY_KEY in self.shapes else {})
        if self.hard:
            start[SAMPLED_KEY] = start["h"].new_zeros(batch, 2)
        return start | dict(zip(MEMORY_KEYS, (self.score.key(vectors), vectors, mask), strict=True))

    def forward(
        self, x: Float[Tensor, "B T D"], state: State = None, *, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T E"], State]:
        require_state(state)
        check_input(x, state, self.shapes, self.first.weight)
        before = {name: state[name] for name in (*self.recurrent.shapes, SAMPLED_KEY) if name in state}
        if self.score is not None:
            y, after = self._attend(x, before, [state[name] for name in MEMORY_KEYS], lengths)
            return y, state | after
        if SUMMARY_KEY in self.shapes:
            x = torch.cat([x, state[SUMMARY_KEY][:, None].expand(-1, x.shape[1], -1)], 2)
        y, after = self.recurrent(x, before, lengths=lengths)
        return y, state | after

    def _attend(
        self,
        x: Float[Tensor, "B T D"],
        before: dict[str, Tensor],
        memory: list[Tensor],
        lengths: Int[Tensor, " B"] | None,
    ) -> tuple[Float[Tensor, "B T E"], dict[str, Tensor]]:
        assert self.score is not None
        score: Callable[..., Tensor] = self.score
        p, join = self._join_context(zero_padding(x, lengths))
        keys, values, mask = memory
        keys, values = keys.to(p.dtype), values.to(p.dtype)  # autocast would do it again at every step
        look = self.score.attend_function(keys, values, mask, x.shape[1])
        rows, places = torch.arange(len(p), device=p.device), list[Tensor]()

        def step(p: Tensor, s: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
            return self.recurrent.cell.step(join(p, look(s["h"])), s)

        def hard_step(p: Tensor, s: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
            place, *drawn = sample_position(score(s["h"], keys), mask, self.training)
            places.append(place)
            y, new = self.recurrent.cell.step(join(p, values[rows, place]), s)
            return y, new | {SAMPLED_KEY: s[SAMPLED_KEY] + torch.stack(drawn, 1)}

        y, after = run_recurrence(hard_step if self.hard else step, p, before, lengths)

        def weights() -> Tensor:
            if self.hard:
                looked = F.one_hot(torch.stack(places, 1), keys.shape[1]) * mask[:, None]
                return looked[:, None].to(p.dtype)
            s = torch.cat([before["h"][:, None], y[:, :-1]], 1)
            return masked_softmax(score(s, keys[:, None]), mask[:, None])[:, None]

        self.tap("weights", weights)
        y = zero_padding(y, lengths)
        self.tap("hidden", lambda: y)
        return y, {name: part.to(before[name].dtype) for name, part in after.items()}

    def _join_context(
        self, x: Float[Tensor, "B T D"]
    ) -> tuple[Float[Tensor, "B T P"], Callable[[Tensor, Tensor], Tensor]]:
        """What is known before the steps, and how a context joins it: `W_x x_t + b`, and `+ W_c c_t`.

        Writing one position, `W [x_t; c_t] + b` in one product reads the weights once, as they lie.
        """
        cell = self.recurrent.cell
        if x.shape[1] == 1 and not torch.is_grad_enabled():
            return x, lambda x_t, c: cell.project(torch.cat([x_t, c], 1)[:, None])[:, 0]
        W = cast(Tensor, cell.weight_input)
        W_x, W_c = W[:, : self.d_in], W[:, self.d_in :]
        return linear(x, W_x, cast(Tensor, cell.bias)), lambda p, c: p + linear(c, W_c)


def _make_score(
    score: AttentionScore, width: int, memory_width: int
) -> AdditiveScore | DotProductScore | None:
    if score in ("initial-state", "every-step"):
        return None
    if score == "additive":
        return AdditiveScore(width, memory_width)
    if score == "dot":
        if width != memory_width:
            widths = f"not {width} and {memory_width}"
            raise ValueError(f"score=dot needs a decoder as wide as the memory, {widths}: take general")
        return DotProductScore(nn.Identity(), dot_scores)
    key = Linear(memory_width, width, bias=False)
    return DotProductScore(key, scaled_dot_scores if score == "scaled-dot" else dot_scores)


def _init_linear(*parts: nn.Module) -> None:
    """Weights of linear layers uniform in +-1/sqrt(inputs), which is torch's own choice; biases zero."""
    for part in parts:
        if isinstance(part, nn.Linear):
            part.reset_parameters()
            if part.bias is not None:
                nn.init.zeros_(part.bias)


class AttentionRNNSettings(StrictModel):
    cell: Literal["rnn", "lstm", "gru"] = "gru"
    """Recurrent cell: rnn, lstm or gru."""
    score: AttentionScore = "additive"
    """Score of a state and a vector of the memory: additive, dot, scaled-dot or general.

    Two scores do not attend (the bottleneck): `every-step` has the memory's summary at every step,
    `initial-state` in the first state only."""
    hard: bool = False
    """Attention looks at one sampled position (learned by REINFORCE), not at all by their weights."""

    @model_validator(mode="after")
    def _has_positions(self) -> "AttentionRNNSettings":
        if self.hard and self.score in ("initial-state", "every-step"):
            raise ValueError(
                f"hard=true needs scores of places to draw one: take another than score={self.score}"
            )
        return self


@register_mixer("attention-rnn")
class AttentionRNNSpec(MixerSpec[AttentionRNNSettings]):
    Settings = AttentionRNNSettings
    reads_memory = True

    def make(self, place: MixerPlace[AttentionRNNSettings]) -> AttentionRNN:
        cell, score, hard = place.settings.cell, place.settings.score, place.settings.hard
        return AttentionRNN(cell, place.d_in, place.width, place.memory_width, score, hard)

    def samples_positions(self, settings: AttentionRNNSettings) -> bool:
        return settings.hard
