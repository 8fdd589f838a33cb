"""A model that walks: it reads an instruction, sees a picture at each step, and names the next move."""

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from foveal.config import ModelConfig
from foveal.core.memory import Memory
from foveal.core.state import State
from foveal.encoders.text import TextEncoder
from foveal.layers.block import Stack
from foveal.layers.grid_convolution import Conv2d
from foveal.models.encoder import text_encoder
from foveal.models.language import DecoderMixers
from foveal.models.stack import make_stack

CHANNELS = 32


class Eye(nn.Module):
    """Pictures of `side` by `side` squares, each of `tile` pixels, to vectors of `width`.

    Two convolutions make a vector of each square, a third sees its neighbours too, a linear map all of them.
    """

    def __init__(self, side: int, tile: int, width: int):
        super().__init__()
        self.parts = Conv2d(3, CHANNELS, tile // 2, tile // 2, 0, bias=True)
        self.squares = Conv2d(CHANNELS, CHANNELS, 2, 2, 0, bias=True)
        self.around = Conv2d(CHANNELS, CHANNELS, 3, 1, 1, bias=True)
        self.whole = nn.Linear(CHANNELS * side**2, width)

    def forward(self, pictures: UInt8[Tensor, "N 3 P P"]) -> Float[Tensor, "N D"]:
        x = pictures.to(self.whole.weight.dtype, memory_format=torch.channels_last).mul_(1 / 127.5).sub_(1)
        for layer in (self.parts, self.squares, self.around):
            x = layer(x).relu()
        return self.whole(x.flatten(1))


class Walker(nn.Module):
    """`h_t = f(h_(t-1), v_t + e(a_(t-1)), memory)`, the next move a_t from `softmax(W h_t + b)`.

    The memory is the encoder's of the instruction, v_t what the eye makes of the view, and e an embedding of
    the move before, the first of which is none. f is a stack of mixers that read a memory.
    """

    def __init__(self, encoder: TextEncoder, eye: Eye, stack: Stack, width: int, moves: int):
        super().__init__()
        self.none = moves
        self.encoder, self.eye, self.stack = encoder, eye, stack
        self.before = nn.Embedding(moves + 1, width)
        self.projection = nn.Linear(width, moves)

    def start(self, memory: Memory) -> State:
        """The state before the first step, of each row of the memory."""
        return self.stack.init_state(len(memory.mask), memory=memory)

    def forward(
        self,
        views: UInt8[Tensor, "B T 3 P P"],
        before: Int[Tensor, "B T"],
        state: State,
        lengths: Int[Tensor, " B"] | None = None,
    ) -> tuple[Float[Tensor, "B T M"], State]:
        """Logits of the moves at each step, and the state behind them."""
        seen = self.eye(views.flatten(0, 1)).view(*before.shape, -1)
        x, state, _ = self.stack(seen + self.before(before), state, lengths=lengths)
        return self.projection(x), state


def walker(config: ModelConfig, vocabulary: int, longest: int, side: int, tile: int, moves: int) -> Walker:
    """From a config; instructions are of `vocabulary` tokens, they and walks `longest` steps at most."""
    encoder = text_encoder(config.encoder, vocabulary, longest)
    stack = make_stack(DecoderMixers(config, encoder.width), config.width, longest)
    return Walker(encoder, Eye(side, tile, config.width), stack, config.width, moves)
