"""Small files of texts, pairs, tags and tones."""

import random
from pathlib import Path

import numpy as np
import soundfile

WORDS = ("red", "green", "blue", "cat", "dog", "runs", "sits", "the")
COMMON = ("data.batch_tokens=400", "training.evaluate_every=10", "training.ema_decay=0.0")
DECODER = ("model.width=16", "model.layers=1", "model.embedding_width=0")
SPEECH = (*COMMON, *DECODER, "model.encoder.width=16", "model.encoder.layers=1")
TAGS = (*COMMON, "model.encoder.width=16", "model.encoder.layers=1", "model.encoder.embedding_width=0")
SMALL = (*TAGS, "data.vocab_size=300")
"""For labels of texts."""
PAIRS = (*SMALL, "model.width=16", "model.layers=1")
"""For translation, whose decoder has the embedding of the encoder."""
STRINGS = (*TAGS, *DECODER)


def sentences(count: int = 60) -> list[str]:
    draw = random.Random(0)
    return [" ".join(draw.choices(WORDS, k=draw.randint(2, 6))) for _ in range(count)]


def write_pairs(path: str = "pairs.tsv", count: int = 60) -> list[str]:
    rows = sentences(count)
    Path(path).write_text("source\ttarget\n" + "".join(f"{row}\t{row[::-1].upper()}\n" for row in rows))
    return rows


def write_labels(path: str = "labels.csv") -> None:
    rows = "".join(f"{row},{'cat' if 'cat' in row else 'none'}\n" for row in sentences())
    Path(path).write_text(f"text,label\n{rows}")


def write_tags(path: str = "tags.conllu") -> None:
    lines = []
    for row in sentences():
        for number, word in enumerate(row.split(), 1):
            tag = "NOUN" if word in ("cat", "dog") else "VERB" if word.endswith("s") else "X"
            lines.append("\t".join([str(number), word, word, tag, *"_" * 6]))
        lines.append("")
    Path(path).write_text("\n".join(lines) + "\n")


def write_tones(folder: str) -> None:
    """Write recordings of two tones, each with a name."""
    rows, noise = ["file_name,text"], np.random.default_rng(0)
    Path(folder).mkdir()
    for number in range(24):
        name, pitch = (("low", 200), ("high", 900))[number % 2]
        wave = np.sin(np.arange(1600 + 40 * number) * pitch * 2 * np.pi / 8000)
        soundfile.write(f"{folder}/{number}.wav", 0.3 * wave + 0.01 * noise.normal(size=len(wave)), 8000)
        rows.append(f"{number}.wav,{name}")
    Path(folder, "metadata.csv").write_text("\n".join([*rows, ""]))
