"""A navigation agent, which reads an instruction, gets a view at each step, and chooses the next move."""

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from foveal.config import ModelConfig
from foveal.core.memory import Memory
from foveal.core.module_facts import LayerGroups, merge_layer_groups
from foveal.core.state import State
from foveal.encoders.text import TextEncoder
from foveal.layers.blocks.stack import Stack
from foveal.layers.embedding import Embedding
from foveal.layers.mixers.cross_attention import CrossAttention
from foveal.layers.vision.conv2d import Conv2d
from foveal.models.decoder import DecoderMixerFactory
from foveal.models.encoder import text_encoder
from foveal.models.stack import make_stack

CHANNELS, FEATURES, HEADS = 32, 64, 4
"""Filters of the tile encoder, width of a square's vector, and heads that attend to the instruction."""


class TileEncoder(nn.Module):
    """Encodes views as a vector of FEATURES for each square of `tile` by `tile` pixels.

    A vector depends only on the pixels of its own square, and not on neighboring squares.
    """

    def __init__(self, tile: int):
        super().__init__()
        self.parts = Conv2d(3, CHANNELS, tile // 2, tile // 2, 0, bias=True)
        self.squares = Conv2d(CHANNELS, FEATURES, 2, 2, 0, bias=True)

    def forward(self, images: UInt8[Tensor, "N 3 P P"]) -> Float[Tensor, "N S C"]:
        dtype = self.parts.weight.dtype
        x = images.to(dtype, memory_format=torch.channels_last).mul_(1 / 127.5).sub_(1)
        for layer in (self.parts, self.squares):
            x = layer(x).relu()
        return x.flatten(2).transpose(1, 2)


class NavigationAgent(nn.Module):
    """`h_t = f(h_(t-1), v_t + e(a_(t-1)), memory)`, the next move a_t from `softmax(W h_t + b)`.

    The memory is the encoder's output for the instruction, v_t the vector of the view, and e an embedding of
    the previous move ("none" at first). f is a stack of mixers that read a memory. The vector s_ti of each
    square i of a view attends to the instruction. v_t is a linear map of `relu(s_ti + attend(s_ti, memory))`
    of all squares. This attention compares things with words, which f hardly learns from a sum of both.
    """

    not_hidden = ("projection",)

    def __init__(self, encoder: TextEncoder, stack: Stack, width: int, side: int, tile: int, moves: int):
        super().__init__()
        self.no_move = moves
        self.encoder, self.eye, self.stack = encoder, TileEncoder(tile), stack
        self.said = CrossAttention(FEATURES, HEADS, encoder.width)
        self.whole = nn.Linear(FEATURES * side**2, width)
        self.before = Embedding(moves + 1, width)
        self.projection = nn.Linear(width, moves)

    def layer_groups(self) -> LayerGroups:
        """Return the parameters grouped by depth. The stack comes after the encoder."""
        encoder = self.encoder.layer_groups()
        return merge_layer_groups(self.stack.layer_groups(), [[] for _ in self.stack.blocks] + encoder)

    def reusable_encoder(self) -> nn.Module:
        """Return the encoder of instructions, which another run can reuse."""
        return self.encoder

    def init_state(self, memory: Memory) -> State:
        """Return the state before the first step, for each row of the memory."""
        rows = len(memory.mask)
        return {
            "said": self.said.init_state(rows, memory=memory),
            "stack": self.stack.init_state(rows, memory=memory),
        }

    def forward(
        self,
        views: UInt8[Tensor, "B T 3 P P"],
        before: Int[Tensor, "B T"],
        state: State,
        lengths: Int[Tensor, " B"] | None = None,
    ) -> tuple[Float[Tensor, "B T M"], State]:
        """Return the logits of the moves at each step, and the state after the last step."""
        squares = self.eye(views.flatten(0, 1)).unflatten(0, before.shape).flatten(1, 2)
        context, _ = self.said(squares, state["said"])
        x = self.whole((squares + context).relu().reshape(*before.shape, -1)) + self.before(before)
        x, after, _ = self.stack(x, state["stack"], lengths=lengths)
        return self.projection(x), state | {"stack": after}


def navigation_agent(
    config: ModelConfig, vocabulary: int, max_length: int, side: int, tile: int, moves: int
) -> NavigationAgent:
    """Return the agent of a config.

    Instructions have `vocabulary` different tokens. Instructions and paths have at most `max_length` tokens
    or moves.
    """
    encoder = text_encoder(config.encoder, vocabulary, max_length)
    stack = make_stack(DecoderMixerFactory(config, encoder.width), config.width, max_length)
    return NavigationAgent(encoder, stack, config.width, side, tile, moves)
