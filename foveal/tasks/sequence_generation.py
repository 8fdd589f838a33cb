"""`foveal generate` with a run that writes targets for sources: translations, moves, captions, speech."""

import sys
import time
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.core.examples import Examples, RaggedArray
from foveal.generation.beam_search import Hypothesis
from foveal.generation.options import (
    DEFAULT_BEAM_SEARCH,
    DEFAULT_SAMPLING,
    AttentionMapOptions,
    BeamSearchOptions,
    SamplingOptions,
    generation_json,
)
from foveal.inspection.attention_maps.view import check_attention_options, write_attention_of_run
from foveal.objectives.sequence_to_sequence import SequenceToSequenceObjective
from foveal.tasks.session import LoadedRun, task_of
from foveal.tasks.text_target import EVAL_BEAM, EVAL_LENGTH_PENALTY, SequenceToSequenceTask
from foveal.ui.console import STDERR, log, print_json


def print_targets(
    loaded: LoadedRun,
    sources: list[str],
    sampling_options: SamplingOptions,
    beam_options: BeamSearchOptions,
    attention_options: AttentionMapOptions,
    json: bool,
) -> None:
    """Print the best targets of each source, or drawn ones, a line each; and what was read for the best."""
    examples = _encode_sources(loaded, sources)
    found = _generate_and_print(loaded, sources, examples, sampling_options, beam_options, json)
    write_attention_of_run(loaded, examples, found, attention_options)


def print_targets_of_data(
    loaded: LoadedRun,
    data: Path,
    sampling_options: SamplingOptions,
    beam_options: BeamSearchOptions,
    attention_options: AttentionMapOptions,
    json: bool,
) -> None:
    """The same of what is in a file, a folder or a zip: pictures, recordings, clips, questions."""
    check_attention_options(loaded, attention_options)
    form, config = _sequence_task(loaded).form, loaded.config.data
    rows, examples, _ = prepare_examples.read_unlabeled(form, str(data), loaded.processor, config, log)
    found = _generate_and_print(
        loaded, [row.fields["source"] for row in rows], examples, sampling_options, beam_options, json
    )
    write_attention_of_run(loaded, examples, found, attention_options)


def _sequence_task(loaded: LoadedRun) -> SequenceToSequenceTask:
    kind = task_of(loaded.config)
    assert isinstance(kind, SequenceToSequenceTask)
    return kind


def _generate_and_print(
    loaded: LoadedRun,
    sources: list[str],
    examples: Examples,
    sampling_options: SamplingOptions,
    beam_options: BeamSearchOptions,
    json: bool,
) -> list[list[Hypothesis]]:
    """What is written for each source, and printed. UserError for options that contradict each other."""
    if sampling_options != DEFAULT_SAMPLING and beam_options != DEFAULT_BEAM_SEARCH:
        raise UserError(
            "--best and --length-penalty belong to beam search: leave them out to draw "
            "(--temperature, --top-k, --top-p, --repetition-penalty, --seed, --samples)"
        )
    task: SequenceToSequenceObjective = loaded.task
    began = time.perf_counter()
    found: list[list[Hypothesis]] = [[]] * len(sources)
    alpha = EVAL_LENGTH_PENALTY if beam_options.length_penalty is None else beam_options.length_penalty
    order = _sequence_task(loaded).example_batches(loaded.config, examples)
    for index in range(order.per_epoch):
        batch = order.batch(0, index)
        rows = batch.rows.tolist()
        if sampling_options == DEFAULT_SAMPLING:
            hypotheses = task.beam_decode(batch, beam_options.beam or EVAL_BEAM, beam_options.best, alpha)
        else:
            texts = [sources[row] for row in rows]
            hypotheses = task.sample_decode(batch, texts, sampling_options.sampling, sampling_options.samples)
        for row, ranked in zip(rows, hypotheses, strict=True):
            found[row] = ranked
    seconds = time.perf_counter() - began
    count = sum(len(hypothesis.tokens) for several in found for hypothesis in several)
    decode = loaded.processor.target.decode
    targets = [[decode(task.strip_special_tokens(one)).strip() for one in several] for several in found]
    if json:
        print_json(generation_json(loaded, _samples_json(sources, targets, found), count, seconds))
    else:
        for several in targets:
            sys.stdout.write("".join(f"{' '.join(text.split())}\n" for text in several))
        STDERR.print(f"{count:,} tokens at {count / seconds:,.0f} a second", style="dim")
    return found


def _encode_sources(loaded: LoadedRun, sources: list[str]) -> Examples:
    rows = [loaded.processor.encode_source(source.strip()) for source in sources]
    longest = loaded.config.data.max_length
    for number, (source, row) in enumerate(zip(sources, rows, strict=True), 1):
        if not source.strip():
            raise UserError(
                f"source {number} is empty: give a text (--prompt TEXT, or one a line in --input FILE)"
            )
        if len(row) > longest:
            raise UserError(
                f"source {number} has {len(row)} tokens, the model reads at most {longest}: cut it"
            )
    return Examples({"source": RaggedArray.from_rows(rows)})


def _samples_json(
    sources: list[str], texts: list[list[str]], ranked_hypotheses: list[list[Hypothesis]]
) -> list[dict[str, Any]]:
    return [
        {"source": source, "text": text, "log_probability": one.log_probability, "reason": one.finish_reason}
        for source, several, hypotheses in zip(sources, texts, ranked_hypotheses, strict=True)
        for text, one in zip(several, hypotheses, strict=True)
    ]
