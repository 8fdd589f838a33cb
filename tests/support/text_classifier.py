"""A small text classifier, and the model of a preset."""

from torch import nn

from foveal.encoders.text import TextEncoder
from foveal.heads.classification import ClassificationHead
from foveal.layers.blocks.feedforward import MLP
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.embedding import Embedding
from foveal.layers.mixers.full_attention import FullAttention
from foveal.layers.position import AddPositions, LearnedPosition
from foveal.models.encoder import EncoderWithHead
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of

D = 8


def small_text_classifier() -> EncoderWithHead:
    block = lambda: Block(FullAttention(D, 2), MLP(D, 12), "layer", residual=True)  # noqa: E731
    stack = Stack([block() for _ in range(3)], AddPositions(LearnedPosition(9, D), "add"))
    encoder = TextEncoder(Embedding(5, D), stack, D, nn.LayerNorm(D))
    return EncoderWithHead(encoder, ClassificationHead(D, 2)).double()


def preset_model(name: str) -> nn.Module:
    config = load_config(name, [])
    return task_of(config).example_model()
