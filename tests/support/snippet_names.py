"""The names that snippets of the documentation take for granted, by page: data, models and runs."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.kill import story
from tests.support.command_line import TINY_MODEL, succeed
from tests.support.labeled_images import write_images
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


def notes() -> Names:
    """Write the texts of the quickstart."""
    for name in ("notes.txt", "other.txt"):
        Path(name).write_text(f"The old man.\n{story()}")
    return {"torch": torch}


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


def plugins() -> Names:
    Path("own_cell.py").write_text(PATH.read_text())
    return {}


def films() -> dict[str, list[str]]:
    """Return texts of two moods, with their labels."""
    draw = Random(0)
    moods = (["great", "lovely", "fine", "superb"], ["awful", "dull", "bad", "boring"])
    texts = [" ".join(draw.choices(moods[row % 2], k=4)) + " film" for row in range(80)]
    return {"text": texts, "label": [("good", "bad")[row % 2] for row in range(80)]}


def arrays_of_images() -> Names:
    labels = np.arange(60) % 3
    noise = np.random.default_rng(0).integers(0, 60, (60, 32, 32, 3))
    images = (noise + 60 * labels[:, None, None, None]).astype(np.uint8)
    return {"x_train": images[:48], "y_train": labels[:48], "x_test": images[48:], "y_test": labels[48:]}


def texts_with_labels() -> Names:
    Path("notes.txt").write_text(f"Once upon a time.\n{story()}")
    return {"dataset": films()}


def loaders() -> Names:
    x = torch.randn(80, 8)
    batches = [(part, (part.sum(1) > 0).long()) for part in x.split(20)]
    return {"train_loader": batches, "valid_loader": batches[:1]}


def frame_and_series() -> Names:
    labels = np.arange(40) % 2
    series = np.random.default_rng(0).normal(size=(40, 30)) + labels[:, None] * np.sin(np.arange(30))
    return {"frame": films(), "series": series, "labels": labels}


def photos() -> Names:
    write_images("photos")
    return {}


NAMES: dict[str, Callable[[], Names]] = {
    "README.md": readme,
    "docs/alignment.md": alignment,
    "docs/coming-from/hugging-face.md": texts_with_labels,
    "docs/coming-from/keras.md": arrays_of_images,
    "docs/coming-from/lightning.md": loaders,
    "docs/coming-from/scikit-learn.md": frame_and_series,
    "docs/coming-from/ultralytics.md": photos,
    "docs/interop.md": transformer,
    "docs/metrics.md": translations,
    "docs/plugins.md": plugins,
    "docs/pretraining.md": sentence_encoder,
    "docs/quickstart.md": notes,
    "docs/capture.md": first_run,
    "docs/looking-inside.md": first_run,
}
