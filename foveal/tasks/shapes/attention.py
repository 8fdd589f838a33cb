"""The files of `foveal generate --attention`: the attention to the source for each generated word."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from foveal.data.core.examples import Examples
from foveal.data.core.length_buckets import collate_examples
from foveal.data.images.image_examples import ImageExamples
from foveal.generation.beam_search import Hypothesis
from foveal.generation.options import AttentionMapOptions
from foveal.inspection.attention.render import images_payload, render_word_attention
from foveal.inspection.attention.words import (
    ImageAttention,
    WordAttention,
    average_target_words,
    head_index,
    word_attention,
)
from foveal.inspection.files import payload_file
from foveal.objectives.sequence_to_sequence import SequenceToSequenceObjective
from foveal.ops.audio.log_mel import HOP_SECONDS
from foveal.tasks.shapes.text_target import SequenceToSequenceTask

RowAttention = Callable[
    [SequenceToSequenceTask, SequenceToSequenceObjective, Examples, int, Hypothesis], WordAttention
]


def word_attention_file(
    task: SequenceToSequenceTask,
    objective: SequenceToSequenceObjective,
    examples: Examples,
    hypotheses: Sequence[Hypothesis],
    options: AttentionMapOptions,
    row_attention: RowAttention,
) -> bytes:
    """Return the file of attention between words, in the format of its suffix."""
    maps = [row_attention(task, objective, examples, row, best) for row, best in enumerate(hypotheses)]
    assert options.attention is not None
    return render_word_attention(options.attention, maps, options.head)


def text_attention(
    task: SequenceToSequenceTask,
    objective: SequenceToSequenceObjective,
    examples: Examples,
    row: int,
    best: Hypothesis,
) -> WordAttention:
    """Return the attention between the words of a text and the words of its target, including end tokens."""
    processor, batch = task.processor, collate_examples(examples, np.array([row]))
    heads, (weights,) = objective.attention_maps(batch, [list(best.tokens)])
    source = _token_texts(processor.source.pieces, batch.columns["source"][0].tolist())
    return word_attention(
        source, _token_texts(processor.target.tokenizer.pieces, best.tokens), weights, heads
    )


def speech_attention(
    task: SequenceToSequenceTask,
    objective: SequenceToSequenceObjective,
    examples: Examples,
    row: int,
    best: Hypothesis,
) -> WordAttention:
    """Return the attention between the seconds of a recording and the letters or words of its text."""
    batch = collate_examples(examples, np.array([row]))
    heads, (weights,) = objective.attention_maps(batch, [list(best.tokens)])
    texts, read = average_target_words(
        _token_texts(task.processor.target.tokenizer.pieces, best.tokens), weights
    )
    seconds, vectors = HOP_SECONDS * int(batch.lengths["source"][0]), weights.shape[2]
    times = tuple(f"{seconds * vector / vectors:.2f} s" for vector in range(vectors))
    return WordAttention(times, texts, read, tuple(heads))


def image_attention_file(
    task: SequenceToSequenceTask,
    objective: SequenceToSequenceObjective,
    images: ImageExamples,
    hypotheses: Sequence[Hypothesis],
    options: AttentionMapOptions,
) -> bytes:
    """Return the picture of the attention of each word to its image, in the format of its suffix."""
    maps = [
        _image_attention(task, objective, images, row, best, options.head)
        for row, best in enumerate(hypotheses)
    ]
    assert options.attention is not None
    return payload_file(images_payload(maps), options.attention.suffix)


def _image_attention(
    task: SequenceToSequenceTask,
    objective: SequenceToSequenceObjective,
    images: ImageExamples,
    row: int,
    best: Hypothesis,
    head: str | None,
) -> ImageAttention:
    """Return the attention of a head, or the mean of all heads."""
    tokens = objective.strip_special_tokens(best)
    crop = images.center_crop(row)
    pixels = np.broadcast_to(crop, (*crop.shape[:2], 3))
    if not tokens:
        return ImageAttention(pixels, (0, 0), np.zeros((0, 0)), ())
    batch = task.eval_batch(images, np.array([row]))
    segment, grid = next(
        (segment, segment.grid) for segment in objective.memory(batch).segments if segment.grid is not None
    )
    heads, (weights,) = objective.attention_maps(batch, [tokens])
    mean = weights.mean(0) if head is None else weights[head_index(head, heads)]
    places = mean[None, :, segment.start : segment.start + segment.length]
    names, read = average_target_words(_token_texts(task.processor.target.tokenizer.pieces, tokens), places)
    return ImageAttention(pixels, grid, read[0], names)


def _token_texts(vocabulary: tuple[bytes, ...], tokens: Any) -> list[bytes]:
    return [vocabulary[token] if token < len(vocabulary) else b"<stop>" for token in tokens]
