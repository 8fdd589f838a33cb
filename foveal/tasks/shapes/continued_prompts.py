"""Texts that continue prompts. Ranks share the prompts, or the samples of a single prompt."""

from collections.abc import Iterator
from itertools import chain

from foveal.core.progress import no_progress
from foveal.generation.events import Chunk
from foveal.generation.request import GenerateRequest
from foveal.generation.text_stream import (
    GeneratedText,
    TextChunk,
    beam_text,
    collect_texts,
    generate_text,
)
from foveal.tasks.base import Task
from foveal.training.share import cut_evenly, share

FinishedText = tuple[int, str, int, GeneratedText]
"""The row of a text, its prompt, its number among the texts of the prompt (from 1), and the text."""


def search_texts(
    task: Task, request: GenerateRequest, prompts: list[str], tokens: int
) -> Iterator[Chunk | FinishedText]:
    """Yield the best texts of a beam search for each prompt."""
    beam, best, alpha = request.beam.beam, request.beam.best, request.beam.length_penalty or 0.0
    parts = cut_evenly(len(prompts), task.together.world.size)

    def search(index: int) -> list[list[GeneratedText]]:
        return beam_text(
            task.model,
            task.processor,
            [prompts[row] for row in parts[index]],
            tokens,
            beam=beam,
            best=best,
            alpha=alpha,
            end_tokens=task.processor.end_tokens,
        )

    results = chain.from_iterable(share(len(parts), search, no_progress, task.together))
    for row, (prompt, texts) in enumerate(zip(prompts, results, strict=True)):
        for number, text in enumerate(texts, 1):
            yield row, prompt, number, text


def sample_texts(
    task: Task, request: GenerateRequest, prompts: list[str], tokens: int
) -> Iterator[Chunk | FinishedText]:
    """Yield the samples of each prompt. A single sample of a single prompt is also streamed in chunks."""
    options, several = request.sampling, len(prompts) > 1
    parts = cut_evenly(len(prompts) if several else options.samples, task.together.world.size)

    def chunks(part: range) -> Iterator[TextChunk]:
        return generate_text(
            task.model,
            task.processor,
            [prompts[row] for row in part] if several else prompts,
            tokens,
            options.sampling,
            samples=options.samples if several else len(part),
            first_sample=0 if several else part.start,
            end_tokens=task.processor.end_tokens,
            stops=options.stop,
        )

    if request.stream and len(prompts) * options.samples == 1:
        heading = prompts[0]
        for chunk in chunks(parts[0]):
            yield Chunk(chunk.row, heading + chunk.text)
            heading = ""
            if chunk.finished is not None:
                yield 0, prompts[0], 1, chunk.finished
        return
    texts = share(len(parts), lambda index: collect_texts(chunks(parts[index])), no_progress, task.together)
    for row, text in enumerate(chain.from_iterable(texts)):
        prompt, number = divmod(row, options.samples)
        yield row, prompts[prompt], number + 1, text
