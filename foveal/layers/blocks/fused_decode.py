"""Writing a text with a Transformer: its blocks, one position at a time, in one piece."""

from collections.abc import Sequence
from operator import is_
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveal.core.state import State
from foveal.core.tap import watched
from foveal.layers.blocks.feedforward import MLP, SwiGLU
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.linear import Linear
from foveal.layers.mixers.self_attention import SelfAttention, with_room
from foveal.layers.norm import LayerNorm, RMSNorm
from foveal.ops.activation import Activation
from foveal.ops.fused_decode_step import Affine, Cache, Norm, Weights, known, transformer_step, usable
from foveal.ops.linear import FEW

SETTINGS = ("pre", "residual", "window", "heads", "rotary", "epsilon", "activation")
"""Of the layers of a block, what the kernel depends on."""


def write(
    blocks: Sequence[nn.Module], x: Float[Tensor, "B T D"], states: Sequence[State]
) -> tuple[Float[Tensor, "B T D"], list[State]]:
    """The output of as many of the first `blocks` as `ops.transformer_step` computes, and their new states.

    None are if there is more than one position, where somebody looks inside (a tap, a module's hook), and
    where a part is of another kind: with a window, without residual, post-norm, or a layer that was put in
    the place of one of ours.
    """
    if x.shape[1] != 1 or len(x) > FEW or not x.is_cpu or torch.compiler.is_compiling():
        return x, []
    if torch.is_grad_enabled() or torch.is_autocast_enabled("cpu") or watched():
        return x, []
    weights: list[Weights] = []
    caches: list[Cache] = []
    for block, state in zip(blocks, states, strict=True):
        found = _weights(block)
        if found is None or not _is_cache(state) or state["filled"] != states[0]["filled"]:
            break
        weights.append(found)
        caches.append(Cache(state["keys"], state["values"], state["count"]))
    if not weights or not usable(x, weights, caches):
        return x, []
    filled = states[0]["filled"] + 1
    caches = [
        Cache(with_room(keys, filled), with_room(values, filled), seen) for keys, values, seen in caches
    ]
    y = transformer_step(x, weights, caches, filled)
    after = [{"keys": each.keys, "values": each.values, "count": each.seen} for each in caches]
    return y, [state | {"filled": filled} for state in after]


class _Contents:
    """What a block is made of, to see in a moment that it is still the same, and the kernel's part of it."""

    def __init__(self, block: Block):
        inner = list(block.modules())
        tables: list[dict[str, Any]] = [
            table for part in inner for table in (part._modules, part._parameters)
        ]
        places = [(table, name) for table in tables for name in table]
        places += [(vars(part), name) for part in inner for name in (*SETTINGS, "forward")]
        self._tables, self._names = [table for table, _ in places], [name for _, name in places]
        self._parameters, self._values = list(block.parameters()), self._now()
        self._addresses = list(map(Tensor.data_ptr, self._parameters))
        self._hooks = [hooks for part in inner for hooks in (part._forward_hooks, part._forward_pre_hooks)]
        weights = _gathered(block)
        self.weights = weights if weights is not None and known(weights) else None

    def same(self) -> bool:
        moved = self._addresses != list(map(Tensor.data_ptr, self._parameters))
        return not moved and all(map(is_, self._now(), self._values))

    def hooked(self) -> bool:
        return any(self._hooks)

    def _now(self) -> list[Any]:
        return list(map(dict[str, Any].get, self._tables, self._names))


_known: WeakKeyDictionary[nn.Module, _Contents] = WeakKeyDictionary()


def _weights(block: nn.Module) -> Weights | None:
    """None where the kernel can't compute this block as it is now."""
    if type(block) is not Block or block.training:  # with dropout
        return None
    contents = _known.get(block)
    if contents is None or not contents.same():
        contents = _known[block] = _Contents(block)
    return None if contents.hooked() else contents.weights


def _is_cache(state: State) -> bool:
    return isinstance(state, dict) and state.keys() == {"keys", "values", "count", "filled"}


class _OtherLayer(Exception):
    """A layer that is not ours, as after a surgery on the model."""


def _gathered(block: Block) -> Weights | None:
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
        return Weights(
            attention_norm=_norm(block.mixer_norm),
            query=_affine(mixer.query),
            key=_affine(mixer.key),
            value=_affine(mixer.value),
            output=_affine(mixer.output),
            feedforward_norm=_norm(block.feedforward_norm),
            expand=_affine(network.expand),
            gate=None if gate is None else _affine(gate),
            contract=_affine(network.contract),
            activation=activation,
            heads=mixer.heads,
            rotary=mixer.rotary,
        )
    except _OtherLayer:
        return None


def _norm(layer: nn.Module | None) -> Norm:
    if type(layer) is LayerNorm:
        return Norm(layer.gain, layer.bias, layer.epsilon)
    if type(layer) is RMSNorm:
        return Norm(layer.gain, None, layer.epsilon)
    raise _OtherLayer


def _affine(layer: nn.Module) -> Affine:
    if type(layer) is Linear:
        return Affine(layer.weight, layer.bias)
    raise _OtherLayer
