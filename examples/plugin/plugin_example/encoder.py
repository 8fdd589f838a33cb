"""An encoder of texts: each token by itself, through a small network."""

from torch import Tensor, nn

import foveal
from foveal.core.memory import Memory
from foveal.encoders.make_memory import make_memory


@foveal.register_encoder("token-mlp", reads="text")
class TokenMLP(nn.Module):
    def __init__(self, vocabulary: int, max_length: int, width: int = 64):
        super().__init__()
        self.width = width
        self.embedding = nn.Embedding(vocabulary, width)
        self.inner, self.outer = nn.Linear(width, width), nn.Linear(width, width)

    def reset_parameters(self) -> None:
        for layer in (self.embedding, self.inner, self.outer):
            layer.reset_parameters()

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> tuple[Memory, dict[str, Tensor]]:
        x = self.embedding(tokens)
        return make_memory(x + self.outer(self.inner(x).relu()), lengths, "tokens", "mean"), {}
