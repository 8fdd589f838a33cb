"""The names that snippets of the documentation take for granted, by page: data, models and runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import foveal
from benchmarks.kill import story
from foveal.config.values import StrictModel
from foveal.layers.mixers.recurrent import Recurrent, RecurrentCell
from foveal.layers.mixers.registry import MixerSpec
from tests.support.command_line import TINY_MODEL, succeed
from tests.support.own_cell import PATH
from tests.support.small_texts import SMALL

Names = dict[str, Any]


def trained(run: str) -> Names:
    """Train the run of a page for two steps."""
    Path("text.txt").write_text(f"The old man.\n{story()}")
    succeed("train", "text.txt", *TINY_MODEL, "--budget", "2steps", "--run", run)
    return {}


def readme() -> Names:
    """Train the run of the quickstart, and make a table of reviews."""
    texts = [f"a {('great', 'dull')[row % 2]} film, number {row}" for row in range(40)]
    frame = {"review": texts, "mood": [("good", "bad")[row % 2] for row in range(40)]}
    return trained("runs/shakespeare-demo-1") | {"frame": frame}


def first_run() -> Names:
    trained("first")
    return {"tokens": torch.zeros(1, 5, dtype=torch.int64)}


def sentence_encoder() -> Names:
    """Train an encoder of sentences in place of the published one."""
    Path("text.txt").write_text(f"A sentence.\n{story()}")
    succeed("train", "text.txt", "--task", "masked-lm", *SMALL, "--budget", "2steps", "--run", "minilm")
    return {}


def alignment() -> Names:
    weights = torch.softmax(torch.rand(2, 3, 2), -1).numpy()
    return {"source_pieces": ["the", " cat"], "target_pieces": ["le", " chat", "."], "weights": weights}


def translations() -> Names:
    texts = ["the cat sat on the mat", "a dog ran to the house"] * 10
    return {"references": texts, "outputs": texts[::-1], "sources": texts, "lengths": [6] * len(texts)}


def transformer() -> Names:
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    return {"encoder": nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)}


def cells() -> Names:
    return {
        "StrictModel": StrictModel,
        "Recurrent": Recurrent,
        "RecurrentCell": RecurrentCell,
        "MixerSpec": MixerSpec,
        "foveal": foveal,
    }


def plugins() -> Names:
    Path("own_cell.py").write_text(PATH.read_text())
    return {}


NAMES: dict[str, Callable[[], Names]] = {
    "README.md": readme,
    "docs/alignment.md": alignment,
    "docs/interop.md": transformer,
    "docs/metrics.md": translations,
    "docs/own-cell.md": cells,
    "docs/plugins.md": plugins,
    "docs/pretraining.md": sentence_encoder,
    "docs/quickstart.md": first_run,
    "docs/taps.md": first_run,
}
