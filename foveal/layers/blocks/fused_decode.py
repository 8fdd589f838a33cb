"""Writing a text with a Transformer: its blocks, one position at a time, in one piece."""

from collections.abc import Sequence
from operator import is_
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveal.core.state import State
from foveal.core.tap import is_capturing
from foveal.layers.blocks.feedforward import MLP, SwiGLU
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.linear import Linear
from foveal.layers.mixers.self_attention import SelfAttention, with_capacity
from foveal.layers.norm import LayerNorm, RMSNorm
from foveal.ops.activation import Activation
from foveal.ops.fused_decode_step import (
    BlockWeights,
    KVCache,
    LinearWeights,
    NormWeights,
    block_supported,
    fused_decode_step,
    fused_decode_usable,
)
from foveal.ops.linear import MAX_KERNEL_VECTORS

KERNEL_SETTINGS = ("pre", "residual", "window", "heads", "rotary", "epsilon", "activation")
"""Of the layers of a block, what the kernel depends on."""


def try_fused_decode_step(
    blocks: Sequence[nn.Module], x: Float[Tensor, "B T D"], states: Sequence[State]
) -> tuple[Float[Tensor, "B T D"], list[State]]:
    """The output of as many of the first `blocks` as `ops.fused_decode_step` computes, and their new states.

    None are if there is more than one position, where somebody looks inside (a tap, a module's hook), and
    where a part is of another kind: with a window, without residual, post-norm, or a layer that was put in
    the place of one of ours.
    """
    if x.shape[1] != 1 or len(x) > MAX_KERNEL_VECTORS or not x.is_cpu or torch.compiler.is_compiling():
        return x, []
    if torch.is_grad_enabled() or torch.is_autocast_enabled("cpu") or is_capturing():
        return x, []
    weights: list[BlockWeights] = []
    caches: list[KVCache] = []
    for block, state in zip(blocks, states, strict=True):
        found = _block_weights(block)
        if found is None or not _is_kv_cache(state) or state["filled"] != states[0]["filled"]:
            break
        weights.append(found)
        caches.append(KVCache(state["keys"], state["values"], state["count"]))
    if not weights or not fused_decode_usable(x, weights, caches):
        return x, []
    filled = states[0]["filled"] + 1
    caches = [
        KVCache(with_capacity(keys, filled), with_capacity(values, filled), seen)
        for keys, values, seen in caches
    ]
    y = fused_decode_step(x, weights, caches, filled)
    after = [{"keys": each.keys, "values": each.values, "count": each.lengths} for each in caches]
    return y, [state | {"filled": filled} for state in after]


class _BlockSnapshot:
    """What a block is made of, to see in a moment that it is still the same, and the kernel's part of it."""

    def __init__(self, block: Block):
        inner = list(block.modules())
        tables: list[dict[str, Any]] = [
            table for part in inner for table in (part._modules, part._parameters)
        ]
        places = [(table, name) for table in tables for name in table]
        places += [(vars(part), name) for part in inner for name in (*KERNEL_SETTINGS, "forward")]
        self._tables, self._names = [table for table, _ in places], [name for _, name in places]
        self._parameters, self._values = list(block.parameters()), self._current_values()
        self._addresses = list(map(Tensor.data_ptr, self._parameters))
        self._hooks = [hooks for part in inner for hooks in (part._forward_hooks, part._forward_pre_hooks)]
        weights = _collect_weights(block)
        self.weights = weights if weights is not None and block_supported(weights) else None

    def is_unchanged(self) -> bool:
        moved = self._addresses != list(map(Tensor.data_ptr, self._parameters))
        return not moved and all(map(is_, self._current_values(), self._values))

    def has_hooks(self) -> bool:
        return any(self._hooks)

    def _current_values(self) -> list[Any]:
        return list(map(dict[str, Any].get, self._tables, self._names))


_snapshots: WeakKeyDictionary[nn.Module, _BlockSnapshot] = WeakKeyDictionary()


def _block_weights(block: nn.Module) -> BlockWeights | None:
    """None where the kernel can't compute this block as it is now."""
    if type(block) is not Block or block.training:  # with dropout
        return None
    contents = _snapshots.get(block)
    if contents is None or not contents.is_unchanged():
        contents = _snapshots[block] = _BlockSnapshot(block)
    return None if contents.has_hooks() else contents.weights


def _is_kv_cache(state: State) -> bool:
    return isinstance(state, dict) and state.keys() == {"keys", "values", "count", "filled"}


class _UnsupportedLayer(Exception):
    """A layer that is not ours, as after a surgery on the model."""


def _collect_weights(block: Block) -> BlockWeights | None:
    mixer, network = block.mixer, block.feedforward
    if not block.pre or not block.residual or type(mixer) is not SelfAttention or mixer.window:
        return None
    if any("forward" in vars(part) for part in block.modules()):
        return None
    gate: nn.Module | None
    activation: Activation
    if type(network) is SwiGLU:
        gate, activation = network.gate, "silu"
    elif type(network) is MLP:
        gate, activation = None, network.activation
    else:
        return None
    try:
        return BlockWeights(
            attention_norm=_norm_weights(block.mixer_norm),
            query=_linear_weights(mixer.query),
            key=_linear_weights(mixer.key),
            value=_linear_weights(mixer.value),
            output=_linear_weights(mixer.output),
            feedforward_norm=_norm_weights(block.feedforward_norm),
            expand=_linear_weights(network.expand),
            gate=None if gate is None else _linear_weights(gate),
            contract=_linear_weights(network.contract),
            activation=activation,
            heads=mixer.heads,
            rotary=mixer.rotary,
        )
    except _UnsupportedLayer:
        return None


def _norm_weights(layer: nn.Module | None) -> NormWeights:
    if type(layer) is LayerNorm:
        return NormWeights(layer.gain, layer.bias, layer.epsilon)
    if type(layer) is RMSNorm:
        return NormWeights(layer.gain, None, layer.epsilon)
    raise _UnsupportedLayer


def _linear_weights(layer: nn.Module) -> LinearWeights:
    if type(layer) is Linear:
        return LinearWeights(layer.weight, layer.bias)
    raise _UnsupportedLayer
