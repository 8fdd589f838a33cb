"""Causal multi-head self-attention as a mixer. Its state is the keys and values of its inputs so far."""

from typing import Annotated

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from foveal.config.values import MAX_SIZE, NonNegativeFloat, ReadIf, Size, StrictModel
from foveal.core.memory import Memory
from foveal.core.state import State
from foveal.distributed.tensor_group import SplitAxes, TensorGroup
from foveal.layers.mixers.base import StateShapes, check_input, state_dtype
from foveal.layers.mixers.full_attention import FullAttention
from foveal.layers.mixers.multi_head_attention import (
    PUBLISHED_HEADS,
    HeadOptions,
    MultiHeadAttention,
    check_heads,
)
from foveal.layers.mixers.registry import MixerPlace, MixerSpec, StackFacts, register_mixer
from foveal.ops.attention.attention_map import AttentionMap
from foveal.ops.attention.cached_attention import cached_attention, cached_attention_usable
from foveal.ops.jit.dispatch import use_fast_path
from foveal.ops.padding import zero_padding


class SelfAttention(MultiHeadAttention):
    """Causal self-attention: each query sees itself and all earlier positions.

    With a `window` w, a query sees itself and the w - 1 positions before. With `rotary`, queries and keys are
    rotated by their positions.

    State: `count` (B,), the number of inputs of each row so far, and their `keys` and `values` (B, C, G, K).
    Without a window, input j of row b is in slot j, and `filled` is the largest number of slots that any row
    uses. With a window, C = w - 1, and the last w - 1 inputs are right-aligned.

    Example:

        >>> mixer = layers.SelfAttention(16, heads=4, window=3, rotary=True)
        >>> y, state = mixer(torch.randn(2, 5, 16))
        >>> tuple(y.shape), tuple(state["keys"].shape)
        ((2, 5, 16), (2, 2, 4, 4))

    Raises: ValueError: `heads` does not divide `width`.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        window: int = 0,
        rotary: bool = False,
        options: HeadOptions = PUBLISHED_HEADS,
    ):
        super().__init__(width, heads, width, options)
        self.window, self.rotary = window, rotary
        self.bounded = window > 0
        self.shapes = self._state_shapes()

    def _state_shapes(self) -> StateShapes:
        cached = (self.window - 1 if self.window else -1, self.key_heads, self.head_width)
        shapes: dict[str, tuple[int, ...] | None] = {"keys": cached, "values": cached, "count": ()}
        return shapes if self.window else shapes | {"filled": None}

    def split_among(self, group: TensorGroup) -> SplitAxes:
        if self.window:
            raise ValueError("the keys of a window, which the next batch reads, can't be split")
        axes = super().split_among(group)
        self.shapes = self._state_shapes()
        return axes

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        slots = self.window - 1 if self.window else capacity or 0
        weight = self.key.weight
        shape = (batch, slots, self.key_heads, self.head_width)
        empty = weight.new_zeros(shape, dtype=state_dtype(weight))
        count = torch.zeros(batch, dtype=torch.long, device=weight.device)
        start: dict[str, State] = {"keys": empty, "values": empty.clone(), "count": count}
        return start if self.window else start | {"filled": 0}

    def forward(
        self, x: Float[Tensor, "B T D"], state: State = None, *, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T D"], State]:
        own_lengths = self.group.own_lengths(lengths)
        x = self.group.enter(zero_padding(x, own_lengths))
        check_input(x, state, self.shapes, self.key.weight)
        B, T, _ = x.shape
        before = x.new_zeros(B, dtype=torch.long) if state is None else state["count"]
        positions = None
        if self.rotary:
            offset = x.new_zeros(1, dtype=torch.long) if state is None else before
            positions = offset[:, None] + torch.arange(T, device=x.device)
        q, k, v = self._queries_keys_values(x, positions)
        added = before.new_full((B,), T) if lengths is None else lengths
        after: dict[str, State] = {"count": before + added}
        if T == 1 and lengths is None and state is not None and not self.window:
            usable = self.heads == self.key_heads
            usable = usable and cached_attention_usable(q, state["keys"], state["values"])
            if use_fast_path("attention", "cached", usable):
                y, cache = self._attend_cached(q, k, v, state)
                return self.output(y.flatten(2)), cache | after
        visible: Bool[Tensor, "#B #T S"] | None
        if self.window:
            k, v, visible, cache = self._slide(k, v, state, before, added)
        elif state is None or (not state["filled"] and torch.is_grad_enabled()):
            # The cache is empty, so there is nothing to append to. Reserved capacity serves generation only.
            visible, cache = None, {"keys": k, "values": v, "filled": T}
        else:
            k, v, visible, cache = self._append(k, v, state, before)
        # The mask of `_append` is complete. Otherwise a query sees the earlier positions in its window.
        causal = self.window > 0 or visible is None
        y = self._attend(q, k, v, visible, causal, self.window)
        return zero_padding(y, own_lengths), cache | after

    def _attend_cached(
        self, q: Float[Tensor, "B 1 H K"], k: Tensor, v: Tensor, state: State
    ) -> tuple[Float[Tensor, "B 1 H K"], dict[str, State]]:
        """Write one key and one value for each row into the cache in place, then attend."""
        filled = state["filled"] + 1
        keys, values = with_capacity(state["keys"], filled), with_capacity(state["values"], filled)
        y = cached_attention(q, k, v, keys, values, state["count"], filled)

        def weights() -> AttentionMap:
            slots = torch.arange(filled, device=q.device)
            visible = (slots <= state["count"][:, None])[:, None, None]
            past, contents, produced = (x.transpose(1, 2) for x in (keys[:, :filled], values[:, :filled], y))
            return AttentionMap(q.transpose(1, 2), past, visible).compare(contents, produced)

        self.tap("weights", weights)
        return y, {"keys": keys, "values": values, "filled": filled}

    def _append(
        self, k: Tensor, v: Tensor, state: State, before: Int[Tensor, " B"]
    ) -> tuple[Tensor, Tensor, Tensor | None, dict[str, State]]:
        """Write keys and values into the slots after each row's count.

        Return all keys and values so far, which of them each query sees, and the new cache. Padding is
        written after the row's new count, so no query sees the padding before it is overwritten. At the first
        call, the queries of all rows see only the new inputs, as without a state.
        """
        T, filled = k.shape[1], state["filled"] + k.shape[1]
        slots = before[:, None] + torch.arange(T, device=k.device)
        cache = {
            "keys": _write_slots(state["keys"], k, slots, filled),
            "values": _write_slots(state["values"], v, slots, filled),
            "filled": filled,
        }
        if filled == T:
            return k, v, None, cache
        visible = torch.arange(filled, device=k.device) <= slots[:, :, None]
        return cache["keys"][:, :filled], cache["values"][:, :filled], visible, cache

    def _slide(
        self, k: Tensor, v: Tensor, state: State, before: Int[Tensor, " B"], added: Int[Tensor, " B"]
    ) -> tuple[Tensor, Tensor, Tensor | None, dict[str, State]]:
        """Append the new keys and values to the w - 1 past ones, and cache the last w - 1 of each row.

        A row may have fewer than w - 1 past keys. The mask excludes the slots before them.
        """
        past = self.window - 1
        if state is None:
            old_k = old_v = k.new_zeros(k.shape[0], past, *k.shape[2:])
        else:
            old_k, old_v = state["keys"], state["values"]
        all_k, all_v = torch.cat([old_k, k], 1), torch.cat([old_v, v], 1)
        last = added[:, None] + torch.arange(past, device=k.device)
        last = last[:, :, None, None].expand(-1, -1, *k.shape[2:])
        cache: dict[str, State] = {"keys": all_k.gather(1, last), "values": all_v.gather(1, last)}
        if state is None:
            return k, v, None, cache
        valid = torch.arange(past + k.shape[1], device=k.device) >= past - before[:, None]
        return all_k, all_v, valid[:, None], cache


def _write_slots(cache: Tensor, new: Tensor, slots: Int[Tensor, "B T"], filled: int) -> Tensor:
    """Return `cache` with `new` written into `slots`, enlarged to `filled` slots. With gradients off, write
    in place."""
    cache = with_capacity(cache, filled)
    index = slots[:, :, None, None].expand_as(new)
    new = new.to(cache.dtype)
    return cache.scatter(1, index, new) if torch.is_grad_enabled() else cache.scatter_(1, index, new)


def with_capacity(cache: Tensor, filled: int) -> Tensor:
    """Return `cache` with at least `filled` slots. Without gradients, the capacity grows by doubling."""
    if filled <= cache.shape[1]:
        return cache
    capacity = filled if torch.is_grad_enabled() else max(filled, 2 * cache.shape[1])
    return F.pad(cache, (0, 0, 0, 0, 0, capacity - cache.shape[1]))


class AttentionSettings(StrictModel):
    heads: Size = 4
    """Number of heads, each of an equal part of the width."""
    key_heads: Annotated[int, Field(ge=0, le=MAX_SIZE)] = 0
    """Heads of keys and values, each read by equally many queries; 0 for as many as heads."""
    head_width: Annotated[int, Field(ge=0, le=MAX_SIZE)] = 0
    """Width of a head; 0 for the width of the stack over the number of heads."""
    qk_norm: bool = False
    """Normalizes the queries and keys of each head (RMS norm)."""
    bias: bool = True
    """The four linear layers have biases."""
    window: Annotated[int, Field(ge=0, le=MAX_SIZE)] = 0
    """Keys that a query sees, its own included; 0 for all before it."""
    global_every: Annotated[int, Field(ge=0, le=MAX_SIZE), ReadIf("window")] = 0
    """Every n-th layer has no window, and sees all before it; 0 for a window in all layers."""
    global_rotary_base: Annotated[NonNegativeFloat, ReadIf("global_every")] = 0.0
    """Base of the angles of rotary positions in layers without a window; 0 for that of the others."""


@register_mixer("attention")
class AttentionSpec(MixerSpec[AttentionSettings]):
    Settings = AttentionSettings
    same_width = True
    sees_whole_row = True

    def make(self, place: MixerPlace[AttentionSettings]) -> SelfAttention | FullAttention:
        settings, base = place.settings, place.rotary_base
        every = settings.global_every if settings.window else 0
        is_global = every > 0 and (place.layer + 1) % every == 0
        if is_global and base:
            base = settings.global_rotary_base or base
        options = HeadOptions(
            settings.key_heads,
            settings.head_width,
            settings.qk_norm,
            settings.bias,
            base or PUBLISHED_HEADS.rotary_base,
            place.norm_epsilon,
        )
        if place.causal:
            window = 0 if is_global else settings.window
            return SelfAttention(place.width, settings.heads, window, base > 0, options)
        return FullAttention(place.width, settings.heads, base > 0, options)

    def check(self, settings: AttentionSettings, stack: StackFacts) -> None:
        check_heads(settings.heads, stack, self.section, settings.head_width)
        section = f"{stack.section}.{self.section}"
        if settings.key_heads and settings.heads % settings.key_heads:
            raise ValueError(
                f"{section}.heads={settings.heads} is not a multiple of "
                f"{section}.key_heads={settings.key_heads}"
            )
        if settings.window and not stack.causal:
            raise ValueError(f"{section}.window: an encoder sees the whole row; leave the window out")
