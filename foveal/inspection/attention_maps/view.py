"""`foveal generate --attention`: what was read of a source while each word of its target was written."""

from typing import Any

import numpy as np

from foveal.core.errors import UserError
from foveal.data.core.examples import Examples
from foveal.data.core.length_buckets import collate_examples
from foveal.data.images.image_examples import ImageExamples
from foveal.generation.beam_search import Hypothesis
from foveal.generation.options import AttentionMapOptions
from foveal.inspection.attention_maps.compute import (
    WordAttention,
    average_target_words,
    head_index,
    word_attention,
    write_word_attention,
)
from foveal.inspection.attention_maps.plot_image import ImageAttention, plot_image_attention
from foveal.objectives.sequence_to_sequence import SequenceToSequenceObjective
from foveal.ops.audio.log_mel import HOP_SECONDS
from foveal.store.durable import atomic_write
from foveal.tasks.session import LoadedRun, task_of
from foveal.tasks.text_target import SequenceToSequenceTask
from foveal.ui.console import log


def check_attention_options(loaded: LoadedRun, attention_options: AttentionMapOptions) -> None:
    """UserError for a picture that can't be made of what the run reads."""
    task, file = loaded.config.task.name, attention_options.attention
    if file is None:
        return
    if task in ("video-captioning", "vqa-generate"):
        read = "clips" if task == "video-captioning" else "pictures with questions"
        raise UserError(f"--attention: {loaded.run.path} reads {read}, of which there is no such picture")
    if task == "captioning" and file.suffix != ".png":
        raise UserError(f"{file}: where a model looked in a picture is drawn as .png; choose that")


def write_attention_of_run(
    loaded: LoadedRun, examples: Any, found: list[list[Hypothesis]], attention_options: AttentionMapOptions
) -> None:
    """Write the picture that is asked for, of the likeliest target of each source."""
    file, task = attention_options.attention, loaded.config.task.name
    if file is None:
        return
    best = enumerate(several[0] for several in found)
    if task == "captioning":
        atomic_write(
            file,
            plot_image_attention(
                [_image_attention(loaded, examples, row, one, attention_options.head) for row, one in best]
            ),
        )
    else:
        of = _speech_attention if task == "speech-recognition" else _text_attention
        write_word_attention(
            file, [of(loaded, examples, row, one) for row, one in best], attention_options.head
        )
    log(f"attention: {file}")


def _text_attention(loaded: LoadedRun, examples: Examples, row: int, best: Hypothesis) -> WordAttention:
    """Between the words of a source and of its target, their stops included."""
    inputs, batch = loaded.processor, collate_examples(examples, np.array([row]))
    heads, (weights,) = loaded.task.attention_maps(batch, [list(best.tokens)])
    source = _token_texts(inputs.source.pieces, batch.columns["source"][0].tolist())
    return word_attention(source, _token_texts(inputs.target.pieces, best.tokens), weights, heads)


def _speech_attention(loaded: LoadedRun, examples: Examples, row: int, best: Hypothesis) -> WordAttention:
    """Between the seconds of a recording and the letters, or words, of its text."""
    batch = collate_examples(examples, np.array([row]))
    heads, (weights,) = loaded.task.attention_maps(batch, [list(best.tokens)])
    texts, read = average_target_words(_token_texts(loaded.processor.target.pieces, best.tokens), weights)
    seconds, vectors = HOP_SECONDS * int(batch.lengths["source"][0]), weights.shape[2]
    times = tuple(f"{seconds * vector / vectors:.2f} s" for vector in range(vectors))
    return WordAttention(times, texts, read, tuple(heads))


def _image_attention(
    loaded: LoadedRun, images: ImageExamples, row: int, best: Hypothesis, head: str | None
) -> ImageAttention:
    """Where in a picture each word of its text was found: by one head, or the mean of all."""
    task: SequenceToSequenceObjective = loaded.task
    tokens, kind = task.strip_special_tokens(best), task_of(loaded.config)
    assert isinstance(kind, SequenceToSequenceTask)
    pixels = np.broadcast_to(images.center_crop(row), (*images.center_crop(row).shape[:2], 3))
    if not tokens:
        return ImageAttention(pixels, (0, 0), np.zeros((0, 0)), ())
    batch = kind.eval_batch(images, np.array([row]))
    grids = ((part, part.grid) for part in task.memory(batch).segments if part.grid is not None)
    part, grid = next(grids)
    heads, (weights,) = task.attention_maps(batch, [tokens])
    seen = weights.mean(0) if head is None else weights[head_index(head, heads)]
    names, read = average_target_words(
        _token_texts(loaded.processor.target.pieces, tokens),
        seen[None, :, part.start : part.start + part.length],
    )
    return ImageAttention(pixels, grid, read[0], names)


def _token_texts(vocabulary: tuple[bytes, ...], tokens: Any) -> list[bytes]:
    return [vocabulary[token] if token < len(vocabulary) else b"<stop>" for token in tokens]
