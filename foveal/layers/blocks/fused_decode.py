"""Generation with a Transformer: several blocks compute one position in a single kernel call."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveal.core.state import State
from foveal.core.tap import is_capturing
from foveal.core.torch_private import may_have_hooks
from foveal.distributed.tensor_group import ONE_PART
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

BlockPlan = Sequence[BlockWeights | None]
"""The weights of a stack's blocks; None for a block that the kernel can't compute."""

_active_plans: ContextVar[Mapping[nn.Module, BlockPlan] | None] = ContextVar(
    "fused_decode_plans", default=None
)


class FusedDecoding:
    """The blocks that `fuse_for_decoding` found in a model. The model's stacks use the kernel while this is
    `active`."""

    def __init__(self, plans: Mapping[nn.Module, BlockPlan]):
        self._plans = plans

    @contextmanager
    def active(self) -> Iterator[None]:
        """Return a context in which the model's stacks use the kernel, in this thread."""
        token = _active_plans.set(self._plans)
        try:
            yield
        finally:
            _active_plans.reset(token)


def plan_blocks(blocks: Iterable[nn.Module]) -> BlockPlan:
    """Return the weights of each block for the kernel, from the block's current state."""
    return [_block_weights(block) for block in blocks]


def active_plan(stack: nn.Module) -> BlockPlan:
    """Return the plan of a stack inside `FusedDecoding.active`; empty outside."""
    plans = None if torch.compiler.is_compiling() else _active_plans.get()
    return () if plans is None else plans.get(stack, ())


def try_fused_decode_step(
    plan: BlockPlan, x: Float[Tensor, "B T D"], states: Sequence[State]
) -> tuple[Float[Tensor, "B T D"], list[State]]:
    """Return the output of as many of the plan's first blocks as the kernel computes, and their new states.

    The kernel computes no block if there is more than one position or too many rows, or if gradients,
    autocast or a tap are active.
    """
    if x.shape[1] != 1 or len(x) > MAX_KERNEL_VECTORS or not x.is_cpu or torch.compiler.is_compiling():
        return x, []
    if torch.is_grad_enabled() or torch.is_autocast_enabled("cpu") or is_capturing():
        return x, []
    weights: list[BlockWeights] = []
    caches: list[KVCache] = []
    for block, state in zip(plan, states, strict=True):
        if block is None or not _is_kv_cache(state) or state["filled"] != states[0]["filled"]:
            break
        weights.append(block)
        caches.append(KVCache(state["keys"], state["values"], state["count"]))
    if not weights or not fused_decode_usable(x, weights, caches):
        return x, []
    filled = states[0]["filled"] + 1
    caches = [
        KVCache(with_capacity(keys, filled), with_capacity(values, filled), counts)
        for keys, values, counts in caches
    ]
    y = fused_decode_step(x, weights, caches, filled)
    after = [{"keys": cache.keys, "values": cache.values, "count": cache.lengths} for cache in caches]
    return y, [state | {"filled": filled} for state in after]


def _block_weights(block: nn.Module) -> BlockWeights | None:
    """Return the weights of a block, or None if the kernel must not compute it.

    The kernel computes no block in training mode, with hooks, or with layers of other classes.
    """
    if type(block) is not Block or block.training:  # with dropout
        return None
    if any(map(may_have_hooks, block.modules())):
        return None
    weights = _collect_weights(block)
    return weights if weights is not None and block_supported(weights) else None


def _is_kv_cache(state: State) -> bool:
    return isinstance(state, dict) and state.keys() == {"keys", "values", "count", "filled"}


class _UnsupportedLayer(Exception):
    """Raised for a layer of a class that the kernel does not compute."""


def _collect_weights(block: Block) -> BlockWeights | None:
    """Return the weights of a pre-norm block with residuals, whole attention without a window, and a known
    network.

    The weights are detached: they keep their memory even if the layer gets another tensor.
    """
    mixer, network = block.mixer, block.feedforward
    if not block.pre or not block.residual or type(mixer) is not SelfAttention or mixer.window:
        return None
    if mixer.group is not ONE_PART or not mixer.options.are_published or block.mixer_output_norm is not None:
        return None
    if any("forward" in vars(module) for module in block.modules()):
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
        return NormWeights(layer.gain.detach(), layer.bias.detach(), layer.epsilon)
    if type(layer) is RMSNorm:
        return NormWeights(layer.gain.detach(), None, layer.epsilon)
    raise _UnsupportedLayer


def _linear_weights(layer: nn.Module) -> LinearWeights:
    if type(layer) is Linear:
        return LinearWeights(layer.weight.detach(), None if layer.bias is None else layer.bias.detach())
    raise _UnsupportedLayer
