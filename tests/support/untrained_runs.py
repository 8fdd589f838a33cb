"""Runs of tiny models before their training, for views: of every kind of task, from data written here."""

import json
import wave
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from foveal.core.log import Log
from foveal.data.open import DataPaths
from foveal.store.run import RunFolder
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of
from foveal.tasks.session import EvaluationData, Session, build_model
from tests.support.captioned_shapes import write_shapes
from tests.support.labeled_images import write_images
from tests.support.shape_questions import write_questions
from tests.support.small_series import write_steps, write_ts

SENTENCES = [
    f"the {size} {color} cat sees a {thing}"
    for size in ("big", "old", "sad")
    for color in ("red", "blue", "gray")
    for thing in ("dog", "tree", "house")
]
SMALL_STACK = ("layers=1", "width=16", "dropout=0")
PIECES = ("data.tokenizer=bpe", "data.vocab_size=300")
CORPUS = ("data.context_length=16", "data.batch_tokens=64")
IMAGE = ("data.image.size=16", "data.image.batch_size=8")
ENCODER = tuple(f"model.encoder.{setting}" for setting in SMALL_STACK)
DECODER = tuple(f"model.{setting}" for setting in SMALL_STACK)


@dataclass(frozen=True)
class UntrainedRun(Session):
    """A run whose data is prepared, and whose model has its first weights."""

    prepared: Any = None

    def held_out(self, data: str | None, option_hint: str, log: Log = print) -> EvaluationData:
        if data is not None:
            return super().held_out(data, option_hint, log)
        return EvaluationData(self.prepared.held_out, "test", {})

    def training_data(self, log: Log = print) -> Any:
        return self.prepared


SMALL_LSTM = (
    *("--model", "lstm", "model.width=16", "model.layers=1"),
    *("data.context_length=16", "data.batch_tokens=64", "training.precision=float32"),
)
"""Arguments of `foveal train` for a text. By default, some processors compute in bfloat16."""


def untrained_run(data: str, preset: str, *settings: str) -> UntrainedRun:
    """Return a run of a preset on DATA, with its first weights."""
    task = task_of(load_config(preset, settings))
    prepared = task.prepare(DataPaths(data), lambda line: None)
    task = task.bind(prepared.processor)
    task = task.bind(prepared.processor, build_model(task, torch.device("cpu")).eval())
    about = {"facts": {"parts": {}}, "preset": preset, "device": "cpu"}
    manifest: dict[str, Any] = {"data": dict.fromkeys(("data", "valid", "test")) | about}
    folder = RunFolder(Path("run"), task.config, manifest)
    return UntrainedRun(folder, task, task.objective(), prepared)


def write_plays(path: str = "plays.txt") -> str:
    Path(path).write_text("\n".join(SENTENCES * 20))
    return path


def write_rows(path: str, **columns: list[Any]) -> str:
    rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
    Path(path).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def write_reversed() -> str:
    return write_rows("pairs.jsonl", source=SENTENCES, target=[text[::-1] for text in SENTENCES])


def write_labeled() -> str:
    return write_rows("texts.jsonl", text=SENTENCES, label=[text.split()[1] for text in SENTENCES])


def write_tagged() -> str:
    words = [text.split() for text in SENTENCES]
    return write_rows("tags.jsonl", tokens=words, tags=[[word[0] for word in row] for row in words])


def write_recordings() -> str:
    """Write a folder of tones by class."""
    for number in range(12):
        name = ("high", "low")[number % 2]
        path = Path("tones", name, f"{number}.wav")
        path.parent.mkdir(parents=True, exist_ok=True)
        times = np.arange(1600 + 80 * number) / 8000
        samples = 8000 * np.sin(2 * np.pi * (1500 if name == "high" else 300) * times)
        with wave.open(str(path), "wb") as file:
            file.setparams((1, 2, 8000, 0, "NONE", ""))
            file.writeframes(samples.astype(np.int16).tobytes())
    return "tones"


KINDS = {
    "language-model": lambda: untrained_run(
        write_plays(), "attention", *DECODER, *CORPUS, "model.attention.heads=2"
    ),
    "hybrid": lambda: untrained_run(
        write_plays(),
        "mamba",
        *DECODER,
        *CORPUS,
        "model.mixers=mamba,attention",
        "model.layers=2",
        "task.batching=windows",
    ),
    "n-grams": lambda: untrained_run(write_plays(), "ngram-lstm", *DECODER, *CORPUS),
    "masked-lm": lambda: untrained_run(write_plays(), "masked-lm", *ENCODER, *CORPUS, *PIECES),
    "permutation-lm": lambda: untrained_run(write_plays(), "permutation-lm", *DECODER, *CORPUS, *PIECES),
    "text-classification": lambda: untrained_run(write_labeled(), "text-classification", *ENCODER, *PIECES),
    "tagging": lambda: untrained_run(write_tagged(), "tagging", *ENCODER),
    "word-tagging": lambda: untrained_run(write_tagged(), "word-tagging", *ENCODER),
    "translation": lambda: untrained_run(write_reversed(), "translation", *ENCODER, *DECODER, *PIECES),
    "transduction": lambda: untrained_run(write_reversed(), "transduction", *ENCODER, *DECODER),
    "image-classification": lambda: untrained_run(
        write_images(count=20), "vit", *ENCODER, "model.encoder.attention.heads=2", *IMAGE
    ),
    "captioning": lambda: untrained_run(write_shapes(count=20), "captioning", *IMAGE, "model.width=16"),
    "hard-captioning": lambda: untrained_run(
        write_shapes(count=20), "captioning-hard-attention", *IMAGE, "model.width=16"
    ),
    "vqa": lambda: untrained_run(write_questions(count=20), "vqa", *IMAGE),
    "vqa-multiple-choice": lambda: untrained_run(
        write_questions("choices", "choices", count=20), "vqa-multiple-choice", *IMAGE
    ),
    "audio-classification": lambda: untrained_run(write_recordings(), "audio-classification", *ENCODER),
    "series-classification": lambda: untrained_run(write_ts(), "series-classification", *ENCODER),
    "series-tagging": lambda: untrained_run(write_steps(), "series-tagging", *ENCODER),
}
"""Makers of a run of each kind, in the folder of the test."""
