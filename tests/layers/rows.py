"""The table that the laws run over: one row a mixer, block or stack. A new mixer is one row."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from examples.own_cell import MinimalGated
from foveal.layers.attention import SelfAttention
from foveal.layers.block import Block, Stack
from foveal.layers.convolution import Convolution
from foveal.layers.feedforward import MLP, Highway, SwiGLU
from foveal.layers.mamba import Mamba
from foveal.layers.moe import Experts
from foveal.layers.position import LearnedPosition, Positioned, SinusoidalPosition
from foveal.layers.recurrent import GRU, LSTM, Elman, Recurrent
from foveal.layers.rwkv import ChannelMixing, TimeMixing
from foveal.layers.ssm import S5

D = 8


@dataclass(frozen=True)
class Row:
    make: Callable[[], nn.Module]
    default: str = ""
    """The fast path that runs by default (in `ops.dispatch`'s words)."""
    standing_nan: bool = True
    """A NaN in the future changes nothing earlier (not promised for attention)."""
    exact: bool = True
    """Causal bit for bit (not promised for experts, whose products have other shapes)."""


def attention_stack(place: str, norm: str) -> nn.Module:
    block = lambda window: Block(  # noqa: E731
        SelfAttention(D, 2, window, rotary=True), SwiGLU(D, 12), norm, place, residual=True
    )
    return Stack([block(0), block(3)])


ROWS = {
    "elman": Row(lambda: Recurrent(Elman(D, 6)), "Elman:fused"),
    "elman-relu": Row(lambda: Recurrent(Elman(D, 6, "relu")), "Elman:fused"),
    "lstm": Row(lambda: Recurrent(LSTM(D, 6)), "LSTM:fused"),
    "lstm-learned-start": Row(lambda: Recurrent(LSTM(D, 6), learned_start=True), "LSTM:fused"),
    "gru-after": Row(lambda: Recurrent(GRU(D, 6)), "GRU:kernel"),
    "gru-before": Row(lambda: Recurrent(GRU(D, 6, "before")), "GRU:reference"),
    "attention": Row(lambda: SelfAttention(D, 2), "attention:fused", False),
    "attention-rotary": Row(lambda: SelfAttention(D, 2, rotary=True), "attention:fused", False),
    "attention-window": Row(lambda: SelfAttention(D, 2, window=3, rotary=True), "attention:fused", False),
    "attention-window-1": Row(lambda: SelfAttention(D, 2, window=1), "attention:fused", False),
    "conv": Row(lambda: Convolution(D, 6, 3), "convolution:one_product"),
    "conv-dilated": Row(lambda: Convolution(D, 6, 3, dilation=2), "convolution:one_product"),
    "conv-pointwise": Row(lambda: Convolution(D, 6, 1), "convolution:one_product"),
    "s5": Row(lambda: S5(D, 6, 2), "linear_scan:kernel"),
    "mamba": Row(lambda: Mamba(D, 2, 5), "selective_scan:kernel"),
    "rwkv-time": Row(lambda: TimeMixing(D), "wkv:kernel"),
    "rwkv-channel": Row(
        lambda: Block(ChannelMixing(D, 12), None, "layer", residual=True), "layer_norm:fused"
    ),
    "block-mamba": Row(
        lambda: Block(Mamba(D, 1, 4, kernel=2), SwiGLU(D, 12), "rms", "pre", residual=True),
        "selective_scan:kernel",
    ),
    "block-lstm": Row(
        lambda: Block(Recurrent(LSTM(D, D)), MLP(D, 16), "rms", "pre", residual=True), "LSTM:fused"
    ),
    "stack-pre": Row(lambda: attention_stack("pre", "rms"), "rms_norm:fused", False),
    "stack-post": Row(lambda: attention_stack("post", "layer"), "layer_norm:fused", False),
    "stack-hybrid": Row(
        lambda: Stack(
            [
                Block(Recurrent(LSTM(D, D)), None, "layer", "pre", residual=True),
                Block(SelfAttention(D, 2, window=4), MLP(D, 16), "layer", "pre", residual=True),
                Block(Recurrent(GRU(D, 6))),
            ]
        ),
        "GRU:kernel",
        False,
    ),
    "stack-learned": Row(
        lambda: Stack(
            [Block(SelfAttention(D, 2), residual=True)], Positioned(LearnedPosition(256, D), "add")
        ),
        "attention:fused",
        False,
    ),
    "stack-sinusoidal": Row(
        lambda: Stack([Block(Recurrent(LSTM(2 * D, 6)))], Positioned(SinusoidalPosition(D), "concatenate")),
        "LSTM:fused",
    ),
    "stack-rwkv": Row(
        lambda: Stack(
            [
                Block(mixer, None, "layer", residual=True)
                for layer in range(2)
                for mixer in (TimeMixing(D, layer, 2), ChannelMixing(D, 12, layer, 2))
            ]
        ),
        "wkv:kernel",
    ),
    "stack-conv": Row(
        lambda: Stack(
            [
                Block(Convolution(D, D, 3, dilation), MLP(D, 16), "layer", residual=True)
                for dilation in (1, 2, 4)
            ]
        ),
        "convolution:one_product",
    ),
    "stack-s5": Row(
        lambda: Stack(
            [
                Block(S5(D, 3, 1), MLP(D, 16), "layer", residual=True),
                Block(Convolution(D, D, 2), None, "rms", residual=True),
                Block(S5(D, 4, 2), None, "rms", residual=True),
            ]
        ),
        "linear_scan:kernel",
    ),
    "block-experts": Row(
        lambda: Block(Recurrent(LSTM(D, D)), Experts(D, 6, 4, 2), "layer", residual=True),
        "experts:sorted",
        exact=False,
    ),
    "stack-experts": Row(
        lambda: Stack(
            [
                Block(SelfAttention(D, 2), Experts(D, 6, 4, 2), "layer", residual=True),
                Block(
                    SelfAttention(D, 2, window=3),
                    Experts(D, 6, 3, 1, activation="relu"),
                    "rms",
                    residual=True,
                ),
            ]
        ),
        "experts:sorted",
        standing_nan=False,
        exact=False,
    ),
    "block-highway": Row(lambda: Block(Recurrent(GRU(D, D)), Highway(D)), "GRU:kernel"),
    # Beyond the built-in ones: an example, and what the contract was proven with.
    "own-cell": Row(lambda: Recurrent(MinimalGated(D, 6)), "MinimalGated:reference"),
}


def make(name: str, dtype: torch.dtype) -> nn.Module:
    """The row's module, ready for the laws."""
    torch.manual_seed(len(name))
    return filled(ROWS[name].make().to(dtype).eval(), 0.7)


def filled(module: nn.Module, size: float) -> nn.Module:
    """`module` with weights large enough that a mistake shows."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.uniform_(-size, size)
    return module


def run(module: nn.Module, x: Tensor, state: object = None, lengths: Tensor | None = None) -> tuple:
    """`y, state` of any row."""
    y, state, *_ = module(x, state, lengths=lengths)
    return y, state


def entries(module: nn.Module, state: object) -> list[Tensor]:
    """The valid entries of a state, so that two states that mean the same compare equal."""
    if isinstance(module, Stack):
        parts = [e for b, s in zip(module.blocks, state["blocks"], strict=True) for e in entries(b, s)]
        return parts + ([state["count"]] if "count" in state else [])
    if isinstance(module, Block):
        return entries(module.mixer, state)
    if isinstance(module, SelfAttention):
        count, parts = state["count"], (state["keys"], state["values"])
        if module.window:
            kept = [min(int(n), module.window - 1) for n in count]
            rows = [
                (part[b, part.shape[1] - k :])
                for part in (state["keys"], state["values"])
                for b, k in enumerate(kept)
            ]
        else:
            rows = [part[b, :n] for part in parts for b, n in enumerate(count)]
        return [count, *rows]
    return [state[name] for name in sorted(state)]
