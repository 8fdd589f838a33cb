"""Runs of more kinds than those of `untrained_runs`: each family of networks, each task that is left, and a
text that a page, a terminal or a picture could take for more than text."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.goldens import write_maps
from tests.support.captioned_shapes import write_shapes
from tests.support.labeled_images import write_images
from tests.support.shape_questions import write_questions
from tests.support.small_films import write_films
from tests.support.small_series import write_ts
from tests.support.small_texts import write_tones
from tests.support.told_series import write_series
from tests.support.untrained_runs import (
    CORPUS,
    DECODER,
    ENCODER,
    IMAGE,
    PIECES,
    UntrainedRun,
    untrained_run,
    write_labeled,
    write_plays,
    write_recordings,
    write_reversed,
)

HOSTILE_WORDS = (
    "</script>",
    "\N{GRINNING FACE}",
    "\N{HEBREW LETTER SHIN}\N{HEBREW LETTER LAMED}",
    "e\N{COMBINING ACUTE ACCENT}\N{COMBINING ACUTE ACCENT}",
    "$\\frac{a}",
    "x" * 200,
    "\x01",
    "\N{RIGHT-TO-LEFT OVERRIDE}abc",
)
"""Words that a page, a terminal or a picture could take for more than text."""
WIDTH = "model.width=16"


def write_hostile(path: str = "hostile.txt") -> str:
    Path(path).write_text("\n".join([" ".join(HOSTILE_WORDS)] * 60))
    return path


def write_speech() -> str:
    write_tones("speech")
    return "speech"


def write_described_series() -> str:
    write_series("series.jsonl")
    return "series.jsonl"


def write_world() -> str:
    Path("world").mkdir(exist_ok=True)
    return f"world/{write_maps(Path('world'))}"


def language(preset: str, *settings: str) -> UntrainedRun:
    return untrained_run(write_plays(), preset, *DECODER, *CORPUS, *settings)


def labeled_images(preset: str, *settings: str) -> UntrainedRun:
    return untrained_run(write_images(count=20), preset, *IMAGE, *settings)


def captions(preset: str, *settings: str) -> UntrainedRun:
    return untrained_run(write_shapes(count=20), preset, *IMAGE, *settings)


def series(preset: str) -> UntrainedRun:
    return untrained_run(write_ts(), preset)


def films(preset: str) -> UntrainedRun:
    return untrained_run(write_films(count=20), preset, "data.image.size=16")


def questions(preset: str) -> UntrainedRun:
    return untrained_run(write_questions("questions", "choices", "history", count=20), preset, *IMAGE)


MORE_KINDS: dict[str, Callable[[], UntrainedRun]] = {
    **{
        f"language-{preset}": partial(language, preset)
        for preset in ("rnn", "lstm", "gru", "s5", "rwkv", "moe", "conv", "min-char-rnn")
    },
    "language-words": lambda: language("lstm", "data.tokenizer=word"),
    "language-learned-positions": lambda: language(
        "attention", "model.attention.heads=2", "model.positions.kind=learned", *PIECES
    ),
    "hostile-text": lambda: untrained_run(
        write_hostile(), "attention", *DECODER, *CORPUS, "data.tokenizer=word", "model.attention.heads=2"
    ),
    "bidirectional-lm": lambda: untrained_run(write_plays(), "bidirectional-lm", *ENCODER, *CORPUS, *PIECES),
    "text-ngrams": lambda: untrained_run(write_labeled(), "text-ngrams"),
    "translation-gru": lambda: untrained_run(
        write_reversed(), "translation-gru", *ENCODER, *DECODER, *PIECES
    ),
    **{
        f"images-{preset}": partial(labeled_images, preset)
        for preset in ("image-classification", "airbench", "hog")
    },
    **{
        f"images-{name}": partial(labeled_images, "image-classification", f"model.encoder.network={name}")
        for name in ("resnet-20", "lenet-5", "mlp", "linear")
    },
    **{
        preset: partial(captions, preset, WIDTH, "model.layers=1")
        for preset in ("captioning-transformer", "captioning-patches")
    },
    **{preset: partial(captions, preset, WIDTH) for preset in ("captioning-bottleneck", "word-recognition")},
    **{preset: partial(questions, preset) for preset in ("vqa-generate", "visual-dialog")},
    "speech-recognition": lambda: untrained_run(write_speech(), "speech-recognition", *ENCODER, *DECODER),
    "audio-minirocket": lambda: untrained_run(write_recordings(), "audio-minirocket"),
    **{preset: partial(series, preset) for preset in ("series-resnet", "minirocket")},
    "series-captioning": lambda: untrained_run(
        write_described_series(), "series-captioning", *ENCODER, WIDTH
    ),
    **{
        preset: partial(films, preset)
        for preset in ("video-classification", "frame-tagging", "video-captioning")
    },
    "glimpses": lambda: labeled_images("glimpses"),
    "draw": lambda: labeled_images("draw", WIDTH, "task.steps=3", "task.latent_size=4"),
    "navigation": lambda: untrained_run(write_world(), "navigation", WIDTH),
}
"""Makers of a run of each kind, in the folder of the test."""
