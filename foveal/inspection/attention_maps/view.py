"""`foveal generate --attention`: what was read of a source while each word of its target was written."""

from typing import Any

import numpy as np

from foveal.core.errors import UserError
from foveal.data.core.examples import Examples
from foveal.data.core.length_buckets import gather
from foveal.data.images.image_examples import Pictures
from foveal.generation.beam_search import Hypothesis
from foveal.generation.options import Looking
from foveal.inspection.attention_maps.compute import (
    Alignment,
    align_words,
    by_words,
    number_of,
    write_alignment,
)
from foveal.inspection.attention_maps.plot_image import Looked, draw
from foveal.objectives.sequence_to_sequence import SequenceTask
from foveal.ops.audio.log_mel import HOP
from foveal.store.durable import replace_file
from foveal.tasks.session import Loaded, kind_of
from foveal.tasks.text_target import WritingKind
from foveal.ui.console import say


def check_reading(loaded: Loaded, looking: Looking) -> None:
    """UserError for a picture that can't be made of what the run reads."""
    task, file = loaded.config.task.name, looking.attention
    if file is None:
        return
    if task in ("narrate", "reply"):
        read = "clips" if task == "narrate" else "pictures with questions"
        raise UserError(f"--attention: {loaded.run.path} reads {read}, of which there is no such picture")
    if task == "caption" and file.suffix != ".png":
        raise UserError(f"{file}: where a model looked in a picture is drawn as .png; choose that")


def draw_reading(loaded: Loaded, examples: Any, found: list[list[Hypothesis]], looking: Looking) -> None:
    """Write the picture that is asked for, of the likeliest target of each source."""
    file, task = looking.attention, loaded.config.task.name
    if file is None:
        return
    best = enumerate(several[0] for several in found)
    if task == "caption":
        replace_file(file, draw([_of_picture(loaded, examples, row, one, looking.head) for row, one in best]))
    else:
        of = _of_recording if task == "transcribe" else _of_text
        write_alignment(file, [of(loaded, examples, row, one) for row, one in best], looking.head)
    say(f"attention: {file}")


def _of_text(loaded: Loaded, examples: Examples, row: int, best: Hypothesis) -> Alignment:
    """Between the words of a source and of its target, their stops included."""
    inputs, batch = loaded.inputs, gather(examples, np.array([row]))
    heads, (weights,) = loaded.task.alignment(batch, [list(best.tokens)])
    source = _pieces(inputs.source.pieces, batch.columns["source"][0].tolist())
    return align_words(source, _pieces(inputs.target.pieces, best.tokens), weights, heads)


def _of_recording(loaded: Loaded, examples: Examples, row: int, best: Hypothesis) -> Alignment:
    """Between the seconds of a recording and the letters, or words, of its text."""
    batch = gather(examples, np.array([row]))
    heads, (weights,) = loaded.task.alignment(batch, [list(best.tokens)])
    texts, read = by_words(_pieces(loaded.inputs.target.pieces, best.tokens), weights)
    seconds, vectors = HOP * int(batch.lengths["source"][0]), weights.shape[2]
    times = tuple(f"{seconds * vector / vectors:.2f} s" for vector in range(vectors))
    return Alignment(times, texts, read, tuple(heads))


def _of_picture(loaded: Loaded, pictures: Pictures, row: int, best: Hypothesis, head: str | None) -> Looked:
    """Where in a picture each word of its text was found: by one head, or the mean of all."""
    task: SequenceTask = loaded.task
    tokens, kind = task.spell(best), kind_of(loaded.config)
    assert isinstance(kind, WritingKind)
    pixels = np.broadcast_to(pictures.centre(row), (*pictures.centre(row).shape[:2], 3))
    if not tokens:
        return Looked(pixels, (0, 0), np.zeros((0, 0)), ())
    batch = kind.gathered(pictures, np.array([row]))
    grids = ((part, part.grid) for part in task.memory(batch).segments if part.grid is not None)
    part, grid = next(grids)
    heads, (weights,) = task.alignment(batch, [tokens])
    seen = weights.mean(0) if head is None else weights[number_of(head, heads)]
    names, read = by_words(
        _pieces(loaded.inputs.target.pieces, tokens), seen[None, :, part.start : part.start + part.length]
    )
    return Looked(pixels, grid, read[0], names)


def _pieces(known: tuple[bytes, ...], tokens: Any) -> list[bytes]:
    return [known[token] if token < len(known) else b"<stop>" for token in tokens]
