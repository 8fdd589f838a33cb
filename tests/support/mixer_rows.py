"""The table that the laws run over: one row for each mixer, block or stack.

A registered mixer without a row gets one, so a new mixer is under the laws at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

import torch
from torch import nn

from foveal.core.memory import Memory
from foveal.laws import law
from foveal.laws.module_states import example_memory
from foveal.layers.blocks.feedforward import MLP, GeGLU, Highway, SwiGLU
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.moe import Experts
from foveal.layers.blocks.stack import Stack
from foveal.layers.mixers.attention_rnn import AttentionRNN
from foveal.layers.mixers.bidirectional import Bidirectional
from foveal.layers.mixers.causal_conv1d import CausalConv1d
from foveal.layers.mixers.cross_attention import CrossAttention
from foveal.layers.mixers.full_attention import FullAttention
from foveal.layers.mixers.mamba import Mamba
from foveal.layers.mixers.multi_head_attention import PUBLISHED_HEADS, HeadOptions
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import ElmanCell, GRUCell, LSTMCell
from foveal.layers.mixers.registry import AnyMixerSpec, MixerPlace, mixer_specs
from foveal.layers.mixers.rwkv import ChannelMixing, TimeMixing
from foveal.layers.mixers.s5 import S5
from foveal.layers.mixers.self_attention import SelfAttention
from foveal.layers.position import AddPositions, LearnedPosition, SinusoidalPosition
from tests.support.own_cell import MinimalGated

ModuleT = TypeVar("ModuleT", bound=nn.Module)

D, M = 8, 5
"""Widths of the inputs, and of a memory's vectors."""


@dataclass(frozen=True)
class MixerRow:
    make: Callable[[], nn.Module]
    default: str = ""
    """The name of the fast path that runs by default, as in `ops.jit.dispatch`, if there is one."""
    standing_nan: bool = True
    """A NaN in the future does not change earlier outputs (not promised for attention)."""
    exact: bool = True
    """Causal bit for bit (not promised for experts, whose products have varying shapes)."""


def mixer_type(module: nn.Module) -> type[nn.Module]:
    """Return the class of a mixer; the class of the cell for a recurrent mixer."""
    return type(module.cell) if isinstance(module, Recurrent) else type(module)


def missing_rows(table: Mapping[str, MixerRow], reads_memory: bool) -> dict[str, MixerRow]:
    """Return rows for the registered mixers, with or without a memory, that have no row in the table."""
    covered = {mixer_type(row.make()) for row in table.values()}

    def row_of(spec: AnyMixerSpec) -> MixerRow:
        return MixerRow(
            lambda: spec.make(MixerPlace(spec.Settings(), D, D, memory_width=M if reads_memory else 0))
        )

    rows = {n: row_of(spec) for n, spec in mixer_specs().items() if spec.reads_memory == reads_memory}
    return {name: row for name, row in rows.items() if mixer_type(row.make()) not in covered}


GEMMA = HeadOptions(key_heads=2, head_width=6, qk_norm=True, bias=False, rotary_base=1e6, epsilon=1e-6)


def attention_stack(
    place: Literal["pre", "post", "both"],
    norm: Literal["layer", "rms"],
    options: HeadOptions = PUBLISHED_HEADS,
) -> nn.Module:
    network = SwiGLU if options.are_published else GeGLU
    block = lambda window: Block(  # noqa: E731
        SelfAttention(D, 2, window, rotary=True, options=options), network(D, 12), norm, place, residual=True
    )
    return Stack([block(0), block(3)])


ROWS = {
    "elman": MixerRow(lambda: Recurrent(ElmanCell(D, 6)), "ElmanCell:fused"),
    "elman-relu": MixerRow(lambda: Recurrent(ElmanCell(D, 6, "relu")), "ElmanCell:fused"),
    "lstm": MixerRow(lambda: Recurrent(LSTMCell(D, 6)), "LSTMCell:fused"),
    "lstm-learned-start": MixerRow(lambda: Recurrent(LSTMCell(D, 6), learned_start=True), "LSTMCell:fused"),
    "gru-after": MixerRow(lambda: Recurrent(GRUCell(D, 6)), "GRUCell:kernel"),
    "gru-before": MixerRow(lambda: Recurrent(GRUCell(D, 6, reset_after=False)), "GRUCell:reference"),
    "attention": MixerRow(lambda: SelfAttention(D, 2), "attention:fused", False),
    "attention-rotary": MixerRow(lambda: SelfAttention(D, 2, rotary=True), "attention:fused", False),
    "attention-window": MixerRow(
        lambda: SelfAttention(D, 2, window=3, rotary=True), "attention:fused", False
    ),
    "attention-shared-keys": MixerRow(
        lambda: SelfAttention(D, 4, rotary=True, options=GEMMA), "attention:fused", False
    ),
    "attention-shared-keys-window": MixerRow(
        lambda: SelfAttention(D, 4, window=4, rotary=True, options=GEMMA), "attention:fused", False
    ),
    "attention-window-1": MixerRow(lambda: SelfAttention(D, 2, window=1), "attention:fused", False),
    "conv": MixerRow(lambda: CausalConv1d(D, 6, 3), "causal_conv1d:one_product"),
    "conv-dilated": MixerRow(lambda: CausalConv1d(D, 6, 3, dilation=2), "causal_conv1d:one_product"),
    "conv-pointwise": MixerRow(lambda: CausalConv1d(D, 6, 1), "causal_conv1d:one_product"),
    "s5": MixerRow(lambda: S5(D, 6, 2), "linear_scan:kernel"),
    "mamba": MixerRow(lambda: Mamba(D, 2, 5), "selective_scan:kernel"),
    "rwkv-time": MixerRow(lambda: TimeMixing(D), "wkv:kernel"),
    "rwkv-channel": MixerRow(
        lambda: Block(ChannelMixing(D, 12), None, "layer", residual=True), "layer_norm:fused"
    ),
    "block-mamba": MixerRow(
        lambda: Block(Mamba(D, 1, 4, kernel=2), SwiGLU(D, 12), "rms", "pre", residual=True),
        "selective_scan:kernel",
    ),
    "block-lstm": MixerRow(
        lambda: Block(Recurrent(LSTMCell(D, D)), MLP(D, 16), "rms", "pre", residual=True), "LSTMCell:fused"
    ),
    "stack-pre": MixerRow(lambda: attention_stack("pre", "rms"), "rms_norm:fused", False),
    "stack-post": MixerRow(lambda: attention_stack("post", "layer"), "layer_norm:fused", False),
    "stack-both": MixerRow(lambda: attention_stack("both", "rms", GEMMA), "rms_norm:fused", False),
    "stack-hybrid": MixerRow(
        lambda: Stack(
            [
                Block(Recurrent(LSTMCell(D, D)), None, "layer", "pre", residual=True),
                Block(SelfAttention(D, 2, window=4), MLP(D, 16), "layer", "pre", residual=True),
                Block(Recurrent(GRUCell(D, 6))),
            ]
        ),
        "GRUCell:kernel",
        False,
    ),
    "stack-learned": MixerRow(
        lambda: Stack(
            [Block(SelfAttention(D, 2), residual=True)], AddPositions(LearnedPosition(256, D), "add")
        ),
        "attention:fused",
        False,
    ),
    "stack-sinusoidal": MixerRow(
        lambda: Stack(
            [Block(Recurrent(LSTMCell(2 * D, 6)))], AddPositions(SinusoidalPosition(D), "concatenate")
        ),
        "LSTMCell:fused",
    ),
    "stack-rwkv": MixerRow(
        lambda: Stack(
            [
                Block(mixer, None, "layer", residual=True)
                for layer in range(2)
                for mixer in (TimeMixing(D, layer, 2), ChannelMixing(D, 12, layer, 2))
            ]
        ),
        "wkv:kernel",
    ),
    "stack-conv": MixerRow(
        lambda: Stack(
            [
                Block(CausalConv1d(D, D, 3, dilation), MLP(D, 16), "layer", residual=True)
                for dilation in (1, 2, 4)
            ]
        ),
        "causal_conv1d:one_product",
    ),
    "stack-s5": MixerRow(
        lambda: Stack(
            [
                Block(S5(D, 3, 1), MLP(D, 16), "layer", residual=True),
                Block(CausalConv1d(D, D, 2), None, "rms", residual=True),
                Block(S5(D, 4, 2), None, "rms", residual=True),
            ]
        ),
        "linear_scan:kernel",
    ),
    "block-experts": MixerRow(
        lambda: Block(Recurrent(LSTMCell(D, D)), Experts(D, 6, 4, 2), "layer", residual=True),
        "moe:sorted",
        exact=False,
    ),
    "stack-experts": MixerRow(
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
        "moe:sorted",
        standing_nan=False,
        exact=False,
    ),
    "block-highway": MixerRow(lambda: Block(Recurrent(GRUCell(D, D)), Highway(D)), "GRUCell:kernel"),
    "own-cell": MixerRow(lambda: Recurrent(MinimalGated(D, 6)), "MinimalGated:reference"),
}
ROWS |= missing_rows(ROWS, reads_memory=False)
WHOLE = {
    "full": MixerRow(lambda: FullAttention(D, 2), "attention:fused"),
    "full-shared-keys": MixerRow(lambda: FullAttention(D, 4, True, GEMMA), "attention:fused"),
    "full-rotary": MixerRow(lambda: FullAttention(D, 2, rotary=True), "attention:fused"),
    "bidirectional": MixerRow(
        lambda: Bidirectional(Recurrent(LSTMCell(D, 6)), Recurrent(GRUCell(D, 5))), "LSTMCell:fused"
    ),
    "bidirectional-sum": MixerRow(
        lambda: Bidirectional(S5(D, 6, 2), CausalConv1d(D, D, 3), "sum"), "linear_scan:kernel"
    ),
    "stack-encoder": MixerRow(
        lambda: Stack(
            [
                Block(FullAttention(D, 2, rotary=True), MLP(D, 16), "layer", residual=True),
                Block(FullAttention(D, 4), SwiGLU(D, 12), "rms", "post", residual=True),
                Block(Bidirectional(Recurrent(GRUCell(D, 4)), Recurrent(GRUCell(D, 4)))),
            ],
            AddPositions(SinusoidalPosition(D), "add"),
        ),
        "attention:fused",
    ),
}
"""Mixers that see the whole row and have no state: only the laws of padding, batch and gradients hold."""
READING = {
    "cross": MixerRow(lambda: CrossAttention(D, 2, M), "attention:fused"),
    "attentive-additive": MixerRow(lambda: AttentionRNN("gru", D, 6, M, "additive"), "additive:kernel"),
    "attentive-dot": MixerRow(lambda: AttentionRNN("lstm", D, M, M, "dot")),
    "attentive-scaled": MixerRow(lambda: AttentionRNN("gru", D, 6, M, "scaled-dot")),
    "attentive-general": MixerRow(lambda: AttentionRNN("rnn", D, 6, M, "general")),
    "attentive-hard": MixerRow(lambda: AttentionRNN("gru", D, 6, M, "additive", hard=True)),
    "attentive-first": MixerRow(lambda: AttentionRNN("gru", D, 6, M, "initial-state"), "GRUCell:kernel"),
    "attentive-summary": MixerRow(lambda: AttentionRNN("lstm", D, 6, M, "every-step"), "LSTMCell:fused"),
    "stack-decoder": MixerRow(
        lambda: Stack(
            [
                Block(SelfAttention(D, 2), None, "layer", residual=True),
                Block(CrossAttention(D, 2, M), MLP(D, 16), "layer", residual=True),
                Block(AttentionRNN("gru", D, D, M, "additive"), None, "rms", residual=True),
            ],
            AddPositions(LearnedPosition(256, D), "add"),
        ),
        "attention:fused",
        standing_nan=False,
    ),
}
"""Mixers, and a stack, that read a memory, with which their state begins."""
READING |= missing_rows(READING, reads_memory=True)
EVERY = ROWS | WHOLE | READING


def make_row_module(name: str, dtype: torch.dtype) -> nn.Module:
    """The row's module, ready for the laws."""
    torch.manual_seed(len(name))
    return randomize(EVERY[name].make().to(dtype).eval(), 0.7)


def memory_of(name: str, dtype: torch.dtype) -> Memory | None:
    """Return the memory for a module that reads one."""
    return example_memory(M, dtype) if name in READING else None


def randomize(module: ModuleT, size: float) -> ModuleT:
    """Return `module` with weights so large that errors become visible."""
    law.randomize(module, size)
    return module
