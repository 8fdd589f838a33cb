"""`foveal generate` with a run that writes targets for sources: translations, sounds, moves."""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from foveal.build import Loaded
from foveal.build.writing import ALPHA, BEAM
from foveal.commands.console import ERROR, result_line, say
from foveal.commands.decoding import DRAWING, SEARCHING, Drawing, Searching, written
from foveal.core.errors import UserError
from foveal.data.buckets import HeldOutExamples, gather
from foveal.data.examples import Examples, Ragged
from foveal.data.pairs import PairInputs
from foveal.generation.beam import Hypothesis
from foveal.inspection.alignment import Alignment, align_words, write_alignment
from foveal.tasks.sequence import SequenceTask


def write_targets(
    loaded: Loaded,
    sources: list[str],
    drawing: Drawing,
    searching: Searching,
    attention: Path | None,
    json: bool,
) -> None:
    """Print the best targets of each source, or drawn ones, a line each; and the attention of the first."""
    if drawing != DRAWING and searching != SEARCHING:
        raise UserError(
            "--best and --length-penalty belong to beam search: leave them out to draw "
            "(--temperature, --top-k, --top-p, --repetition-penalty, --seed, --samples)"
        )
    inputs: PairInputs = loaded.inputs
    task: SequenceTask = loaded.task
    examples = _examples(loaded, sources)
    began = time.perf_counter()
    found: list[list[Hypothesis]] = [[]] * len(sources)
    alpha = ALPHA if searching.length_penalty is None else searching.length_penalty
    order = HeldOutExamples(examples, loaded.config.data.batch_tokens)
    for index in range(order.per_epoch):
        batch = order.batch(0, index)
        rows = batch.rows.tolist()
        if drawing == DRAWING:
            hypotheses = task.write(batch, searching.beam or BEAM, searching.best, alpha)
        else:
            texts = [sources[row] for row in rows]
            hypotheses = task.draw(batch, texts, drawing.sampling, drawing.samples)
        for row, ranked in zip(rows, hypotheses, strict=True):
            found[row] = ranked
    seconds = time.perf_counter() - began
    count = sum(len(hypothesis.tokens) for several in found for hypothesis in several)
    targets = [[inputs.target.decode(task.spell(one)).strip() for one in several] for several in found]
    if json:
        result_line(written(loaded, _samples(sources, targets, found), count, seconds))
    else:
        for several in targets:
            sys.stdout.write("".join(f"{' '.join(text.split())}\n" for text in several))
        ERROR.print(f"{count:,} tokens at {count / seconds:,.0f} a second", style="dim")
    if attention is not None:
        write_alignment(
            attention, [_alignment(task, inputs, examples, row, one[0]) for row, one in enumerate(found)]
        )
        say(f"attention: {attention}")


def _examples(loaded: Loaded, sources: list[str]) -> Examples:
    rows = [loaded.inputs.encode_source(source.strip()) for source in sources]
    longest = loaded.config.data.longest
    for number, (source, row) in enumerate(zip(sources, rows, strict=True), 1):
        if not source.strip():
            raise UserError(
                f"source {number} is empty: give a text (--prompt TEXT, or one a line in --input FILE)"
            )
        if len(row) > longest:
            raise UserError(
                f"source {number} has {len(row)} tokens, the model reads at most {longest}: cut it"
            )
    return Examples({"source": Ragged.from_rows(rows)})


def _alignment(
    task: SequenceTask, inputs: PairInputs, examples: Examples, row: int, best: Hypothesis
) -> Alignment:
    """Between the words of a source and of its likeliest target, their stops included."""
    batch = gather(examples, np.array([row]))
    (weights,) = task.alignment(batch, [list(best.tokens)])
    source = _pieces(inputs.source.pieces, batch.columns["source"][0].tolist())
    return align_words(source, _pieces(inputs.target.pieces, best.tokens), weights)


def _pieces(known: tuple[bytes, ...], tokens: Any) -> list[bytes]:
    return [known[token] if token < len(known) else b"<stop>" for token in tokens]


def _samples(
    sources: list[str], texts: list[list[str]], found: list[list[Hypothesis]]
) -> list[dict[str, Any]]:
    return [
        {"source": source, "text": text, "log_probability": one.log_probability, "reason": one.reason}
        for source, several, hypotheses in zip(sources, texts, found, strict=True)
        for text, one in zip(several, hypotheses, strict=True)
    ]
