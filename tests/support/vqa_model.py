"""A small model that answers questions about images, and a batch for it."""

from typing import Any, TypeVar

import torch
from torch import nn

from foveal.config import Config
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.standardize import Statistics
from foveal.data.text.tokenizers import WordTokenizer
from foveal.tasks.config import from_tables
from foveal.tasks.vqa.image_and_text_source import ImageAndTextProcessor

ModuleT = TypeVar("ModuleT", bound=nn.Module)

SIDE, WORDS = 2, WordTokenizer(["a", "b", "c", "d"])
IMAGE_AND_TEXT = ImageAndTextProcessor(Statistics((0.0,) * 3, (1.0,) * 3), SIDE, WORDS, True)
LENGTHS = {"question": [2, 3, 1], "history": [4, 1, 2]}
CHOICES = ([0, 1, 2], [3, 1, 0], [2, 4, 0])
COUNTS = [2, 3, 2]
"""Of each row's choices; the rest is padding."""


def vqa_config(task: str) -> Config:
    encoder = {"kind": "image", "network": "linear"}
    question = {"mixers": "rnn", "layers": 1, "width": 4, "pooling": "last"}
    joint = {"mixers": "attention", "layers": 1, "width": 4, "attention": {"heads": 1}}
    model: dict[str, Any] = {"encoder": encoder, "head_pooling": "mean"}
    data = {"image": {"size": SIDE}, "tokenizer": "word", "max_length": 6}
    return from_tables(
        {"task": {"name": task, "question": question, "fusion": joint}, "model": model, "data": data}
    )


def randomized(model: ModuleT) -> ModuleT:
    torch.manual_seed(0)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.7)
    return model.double().eval()


def vqa_batch() -> ExampleBatch:
    """Three questions about two images."""
    torch.manual_seed(1)
    columns = {
        "source": torch.randn(2, 3, SIDE, SIDE, dtype=torch.float64),
        "source_of": torch.tensor([1, 0, 1]),
        "question": torch.randint(0, 5, (3, 3)),
        "history": torch.randint(0, 5, (3, 4)),
        "label": torch.tensor([1, 0, 1]),
        "choice": torch.randint(0, 5, (5, 3)),
        "choices": torch.tensor(CHOICES),
    }
    lengths = LENGTHS | {"choice": [3, 1, 2, 3, 2], "choices": COUNTS}
    return ExampleBatch(
        torch.arange(3),
        columns,
        {name: torch.tensor(held) for name, held in lengths.items()},
        torch.ones(3, dtype=torch.int64),
    )
