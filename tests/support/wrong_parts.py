"""An encoder, a head and a network that keep state, and an encoder whose lengths are required, as the text of
plugins."""

ENCODER = """
import foveal
import torch
from torch import nn
from foveal.encoders.make_memory import make_memory

@foveal.register_encoder("mine", reads="text")
class Mine(nn.Module):
    def __init__(self, vocabulary: int, max_length: int, width: int = 6):
        super().__init__()
        self.width, self.embedding = width, nn.Embedding(vocabulary, width)
        self.register_buffer("kept", torch.zeros(width))
    def reset_parameters(self):
        self.embedding.reset_parameters()
    def forward(self, source, lengths):
        return make_memory(self.embedding(source) + KEPT, lengths, "tokens", "mean"), {}
"""
HEAD = """
import foveal
import torch
from torch import nn

@foveal.register_head("mine")
class Mine(nn.Module):
    def __init__(self, width: int, classes: int):
        super().__init__()
        self.projection = nn.Linear(width, classes)
        self.register_buffer("kept", torch.zeros(width))
    def reset_parameters(self):
        self.projection.reset_parameters()
    def forward(self, memory):
        return memory.summary + KEPT, {}
    def project(self, features):
        return self.projection(features)
"""
NETWORK = """
import foveal
import torch
from torch import nn

@foveal.register_model("mine", size=8)
class Mine(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.width, self.layer = 4, nn.Conv2d(channels, 4, 3)
        self.register_buffer("kept", torch.zeros(4, 1, 1))
    def forward(self, images):
        return self.layer(images) + KEPT
"""
COUNTS_CALLS = "self.kept.add_(1)"
PARTS = {"encoder": ENCODER, "head": HEAD, "model": NETWORK}


def right(kind: str) -> str:
    """Return a part that keeps all laws."""
    return PARTS[kind].replace("KEPT", "self.kept")


def keeps_state(kind: str) -> str:
    """Return a part that counts its calls, and adds their number to its output."""
    return PARTS[kind].replace("KEPT", COUNTS_CALLS)
