"""`foveal generate` with a run that writes targets for sources: translations, moves, captions, speech."""

import sys
import time
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.core.examples import Examples, Ragged
from foveal.generation.beam_search import Hypothesis
from foveal.generation.options import DRAWING, SEARCHING, Drawing, Looking, Searching, written
from foveal.inspection.attention_maps.view import check_reading, draw_reading
from foveal.objectives.sequence_to_sequence import SequenceTask
from foveal.tasks.session import Loaded, kind_of
from foveal.tasks.text_target import ALPHA, BEAM, WritingKind
from foveal.ui.console import ERROR, result_line, say


def write_targets(
    loaded: Loaded,
    sources: list[str],
    drawing: Drawing,
    searching: Searching,
    looking: Looking,
    json: bool,
) -> None:
    """Print the best targets of each source, or drawn ones, a line each; and what was read for the best."""
    examples = _examples(loaded, sources)
    found = _written(loaded, sources, examples, drawing, searching, json)
    draw_reading(loaded, examples, found, looking)


def write_seen(
    loaded: Loaded, data: Path, drawing: Drawing, searching: Searching, looking: Looking, json: bool
) -> None:
    """The same of what is in a file, a folder or a zip: pictures, recordings, clips, questions."""
    check_reading(loaded, looking)
    form, config = _kind(loaded).form, loaded.config.data
    rows, examples, _ = prepare_examples.read_questions(form, str(data), loaded.inputs, config, say)
    found = _written(loaded, [row.fields["source"] for row in rows], examples, drawing, searching, json)
    draw_reading(loaded, examples, found, looking)


def _kind(loaded: Loaded) -> WritingKind:
    kind = kind_of(loaded.config)
    assert isinstance(kind, WritingKind)
    return kind


def _written(
    loaded: Loaded,
    sources: list[str],
    examples: Examples,
    drawing: Drawing,
    searching: Searching,
    json: bool,
) -> list[list[Hypothesis]]:
    """What is written for each source, and printed. UserError for options that contradict each other."""
    if drawing != DRAWING and searching != SEARCHING:
        raise UserError(
            "--best and --length-penalty belong to beam search: leave them out to draw "
            "(--temperature, --top-k, --top-p, --repetition-penalty, --seed, --samples)"
        )
    task: SequenceTask = loaded.task
    began = time.perf_counter()
    found: list[list[Hypothesis]] = [[]] * len(sources)
    alpha = ALPHA if searching.length_penalty is None else searching.length_penalty
    order = _kind(loaded).once(loaded.config, examples)
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
    decode = loaded.inputs.target.decode
    targets = [[decode(task.spell(one)).strip() for one in several] for several in found]
    if json:
        result_line(written(loaded, _samples(sources, targets, found), count, seconds))
    else:
        for several in targets:
            sys.stdout.write("".join(f"{' '.join(text.split())}\n" for text in several))
        ERROR.print(f"{count:,} tokens at {count / seconds:,.0f} a second", style="dim")
    return found


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


def _samples(
    sources: list[str], texts: list[list[str]], found: list[list[Hypothesis]]
) -> list[dict[str, Any]]:
    return [
        {"source": source, "text": text, "log_probability": one.log_probability, "reason": one.reason}
        for source, several, hypotheses in zip(sources, texts, found, strict=True)
        for text, one in zip(several, hypotheses, strict=True)
    ]
