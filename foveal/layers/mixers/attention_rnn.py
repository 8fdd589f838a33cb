"""Recurrent decoders that read a memory, by attention at every step or as a single summary vector."""

from collections.abc import Callable
from typing import Any, Literal, cast

import torch
from jaxtyping import Float, Int
from pydantic import model_validator
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.hooks import RemovableHandle

from foveal.config.values import StrictModel
from foveal.core.memory import Memory
from foveal.core.state import State
from foveal.core.tap import TappedModule
from foveal.layers.linear import Linear
from foveal.layers.mixers.attention_scores import AttentionScore, init_linear, make_score
from foveal.layers.mixers.base import StateShapes, check_input
from foveal.layers.mixers.memory_checks import memory_tensors, require_state
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import ElmanCell, GRUCell, LSTMCell
from foveal.layers.mixers.registry import MixerPlace, MixerSpec, register_mixer
from foveal.ops.attention.dot_product import masked_softmax
from foveal.ops.attention.hard_attention import sample_position
from foveal.ops.linear import linear
from foveal.ops.padding import zero_padding

MEMORY_KEYS = ("memory_keys", "memory_values", "memory_mask")
SUMMARY_KEY, SAMPLED_KEY = "memory_summary", "drawn"
CELLS = {"rnn": ElmanCell, "lstm": LSTMCell, "gru": GRUCell}


class AttentionRNN(TappedModule):
    """A recurrent cell that reads a context in addition to its input: `s_t = cell([x_t; c_t], s_(t-1))`.

    The context is a weighted mean of the memory's vectors `h_i`, and the weights depend on the previous
    state: `c_t = sum_i a_ti h_i`, `a_t = softmax(e_t)`. With s = s_(t-1), the h of a cell, the score `e_ti`
    is

    * additive: `v . tanh(W s + U h_i + b)` (Bahdanau et al. 2015, A.1.2);
    * dot: `s . h_i`, for equal widths (Luong et al. 2015, 3.1);
    * general: `s . W h_i` (Luong et al. 2015, 3.1);
    * scaled-dot: `s . W h_i / sqrt(width)` (Vaswani et al. 2017, 3.2.1).

    *Hard* attention reads a single position: `c_t = h_i`. In training, the position is sampled with
    probability a_ti. In evaluation, the likeliest position is read (Xu et al. 2015, 4.1). The state entry
    `drawn` (B, 2) holds two sums over the steps so far: of log a_ti of the sampled positions, and of the
    entropies of the a_t. The objective uses them in its loss.

    In all variants `s_0 = tanh(W summary + b)`, and an LSTM's cell state starts at zero. Two variants have no
    attention, only the summary as a bottleneck. For *every-step*, c_t is the memory's summary at every step
    (Cho et al. 2014). For *initial-state* there is no c_t, so only s_0 depends on the memory (Sutskever et
    al. 2014).

    State: the cell's, and constants: `memory_keys` (B, S, width), computed once, `memory_values` (B, S, M),
    the memory's vectors, and `memory_mask` (B, S). For *every-step* the constant is `memory_summary` (B, M);
    for *initial-state* there is none.

    Example:

        >>> vectors, mask = torch.randn(2, 7, 32), torch.ones(2, 7, dtype=torch.bool)
        >>> memory = layers.Memory(vectors, mask, summary=vectors.mean(1))
        >>> mixer = layers.AttentionRNN("gru", 8, 16, memory_width=32, score="additive")
        >>> y, state = mixer(torch.randn(2, 5, 8), mixer.init_state(2, memory=memory))
        >>> tuple(y.shape)
        (2, 5, 16)

    Raises: ValueError: `score` is dot, and the widths differ.
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
        self.ignores_order = not hard  # the noise of a sampled position depends on its number
        joined = 0 if score == "initial-state" else memory_width
        self.recurrent = Recurrent(CELLS[cell](d_in + joined, width))
        self.first = Linear(memory_width, width)
        self.score = make_score(score, width, memory_width)
        constant_shapes: StateShapes = {} if score == "initial-state" else {SUMMARY_KEY: (memory_width,)}
        if self.score is not None:
            sizes = (-1, width), (-1, memory_width), (-1,)
            constant_shapes = dict(zip(MEMORY_KEYS, sizes, strict=True)) | (
                {SAMPLED_KEY: (2,)} if hard else {}
            )
        self.shapes: StateShapes = {**self.recurrent.shapes, **constant_shapes}
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the cell and the score. W of s_0 is uniform in +-1/sqrt(memory_width), its bias zero."""
        self.recurrent.reset_parameters()
        init_linear(self.first)
        if self.score is not None:
            self.score.reset_parameters()

    @property
    def attention_heads(self) -> int:
        """1 with attention, 0 for a bottleneck."""
        return int(self.score is not None)

    def without_head(self, head: int) -> RemovableHandle:
        """Set the context to zero, until the result's `remove()` is called."""

        def clear(module: nn.Module, args: Any, keywords: Any) -> Any:
            x, state = args
            return (x, {**state, MEMORY_KEYS[1]: torch.zeros_like(state[MEMORY_KEYS[1]])}), keywords

        return self.register_forward_pre_hook(clear, with_kwargs=True)

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
        keys, values = keys.to(p.dtype), values.to(p.dtype)  # autocast would convert them at every step
        attend = self.score.attend_function(keys, values, mask, x.shape[1])
        rows, positions = torch.arange(len(p), device=p.device), list[Tensor]()

        def step(p: Tensor, s: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
            return self.recurrent.cell.step(join(p, attend(s["h"])), s)

        def hard_step(p: Tensor, s: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
            position, log_prob, entropy = sample_position(score(s["h"], keys), mask, self.training)
            positions.append(position)
            y, new = self.recurrent.cell.step(join(p, values[rows, position]), s)
            return y, new | {SAMPLED_KEY: s[SAMPLED_KEY] + torch.stack([log_prob, entropy], 1)}

        y, after = self.recurrent.run_steps(hard_step if self.hard else step, p, before, lengths)

        def weights() -> Tensor:
            if self.hard:
                one_hot = F.one_hot(torch.stack(positions, 1), keys.shape[1]) * mask[:, None]
                return one_hot[:, None].to(p.dtype)
            s = torch.cat([before["h"][:, None], y[:, :-1]], 1)
            return masked_softmax(score(s, keys[:, None]), mask[:, None])[:, None]

        self.tap("weights", weights)
        y = zero_padding(y, lengths)
        self.tap("hidden", lambda: y)
        return y, {name: tensor.to(before[name].dtype) for name, tensor in after.items()}

    def _join_context(
        self, x: Float[Tensor, "B T D"]
    ) -> tuple[Float[Tensor, "B T P"], Callable[[Tensor, Tensor], Tensor]]:
        """Return the projection of the inputs before the loop, and the function that adds a context to a
        step.

        The projection is `W_x x_t + b`, and the function adds `W_c c_t`. For a single position, one product
        `W [x_t; c_t] + b` reads the weights once, in the order in which they are stored.
        """
        cell = self.recurrent.cell
        if x.shape[1] == 1 and not torch.is_grad_enabled():
            return x, lambda x_t, c: cell.project(torch.cat([x_t, c], 1)[:, None])[:, 0]
        W = cast(Tensor, cell.weight_input)
        W_x, W_c = W[:, : self.d_in], W[:, self.d_in :]
        return linear(x, W_x, cast(Tensor, cell.bias)), lambda p, c: p + linear(c, W_c)


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
                f"hard=true samples a position by its score, but score={self.score} gives none: set another"
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
