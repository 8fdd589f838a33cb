"""Few-shot prompts of a language model: their examples are read, new sources answered, and answers scored."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.terminal_text import counted
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.core.split_data import word_counts
from foveal.data.open import open_data, open_path
from foveal.data.pairs.pair import PairFormat
from foveal.data.text.length_limit import LengthLimit
from foveal.data.text.text_source import PairedTextSource
from foveal.data.text.text_target import TextTarget
from foveal.generation.events import Chunk, GenerationEvent, Output
from foveal.generation.few_shot import FewShotPrompt
from foveal.generation.request import GenerateRequest
from foveal.generation.sampling import GREEDY
from foveal.generation.text_stream import collect_texts, encode_prompt, generate_text
from foveal.metrics.recognition import exact_match
from foveal.metrics.translation import bleu_if_meaningful, chrf
from foveal.tasks.base import Task
from foveal.tasks.baseline import Baseline
from foveal.tasks.results import EvaluationResult
from foveal.tasks.shapes.continued_prompts import sample_texts
from foveal.tasks.shapes.text_target import NO_BLEU, text_summary
from foveal.training.share import share

PAIRS = PairFormat(PairedTextSource(), TextTarget("target"))
METRICS = (chrf, bleu_if_meaningful, exact_match)
MAX_EXAMPLES = 1000
"""Examples at most: no model has room for more."""
PROMPTS_AT_ONCE = 16
COPY = "a copy of the source"


def read_examples(path: str, config: DataConfig) -> tuple[tuple[str, str], ...]:
    """Return the sources and targets of a table of examples.

    Raises: UserError: the table can't be read, is empty, or an example can't be used.
    """
    skipped: list[SkippedRow] = []
    opened = open_path(path, config.encoding)
    rows = [*islice(PAIRS.read(opened.sources(PAIRS.source.table), config, skipped), MAX_EXAMPLES + 1)]
    if skipped:
        raise UserError(f"{skipped[0].location}: {skipped[0].reason}")
    if len(rows) > MAX_EXAMPLES:
        raise UserError(f"{path}: over {MAX_EXAMPLES:,} examples, too many for a prompt: give fewer")
    for row in rows:
        check_example(row.location, row.fields["source"], row.fields["target"])
    return tuple((row.fields["source"], row.fields["target"]) for row in rows)


def check_example(location: str, source: str, target: str) -> None:
    """Check that an example has a source and a target, each of one line.

    Raises: UserError: it has not.
    """
    for name, text in (("source", source), ("target", target)):
        if not text.strip():
            raise UserError(f"{location}: its {name} is empty; each example needs a source and a target")
        if len(text.strip().splitlines()) > 1:
            raise UserError(
                f"{location}: its {name} has a line break, at which an answer ends; write it in one line"
            )


def read_pairs(data: str, config: DataConfig, log: Log) -> list[Row]:
    """Return the rows of a table of pairs, of its test split if it has splits.

    Raises: UserError: the table can't be read, or no row can be used.
    """
    skipped: list[SkippedRow] = []
    opened = open_data(data, log, config.encoding)
    rows = [row for row in PAIRS.read(opened.split("test"), config, skipped) if row.fields["target"]]
    if not rows:
        first = f"; the first: {skipped[0].location}: {skipped[0].reason}" if skipped else ""
        raise UserError(f"{data}: no pair of a source and a target{first}")
    if skipped:
        log(
            f"{data}: skipped {counted(len(skipped), 'row')}, the first: {skipped[0].location}: "
            f"{skipped[0].reason}"
        )
    return rows


def answer_sources(task: Task, request: GenerateRequest, shots: FewShotPrompt) -> Iterator[GenerationEvent]:
    """Yield the answers to the sources of a request, each a line of text.

    Raises: UserError: a source is empty, or a prompt is too long.
    """
    sources = request.prompts()
    for number, source in enumerate(sources, 1):
        if not source.strip():
            raise UserError(
                f"source {number} is empty: --shots needs a text to answer (--prompt TEXT, or a line in "
                "--input FILE)"
            )
    prompts = [shots.prompt(source) for source in sources]
    room = room_for_answers(task, request.run, prompts)
    tokens = request.tokens or min(room, answer_limit(task, shots, sources))
    start, count = time.perf_counter(), 0
    stops = replace(request.sampling, stop=(*request.sampling.stop, *shots.stops))
    for event in sample_texts(task, replace(request, stream=False, sampling=stops), prompts, tokens):
        assert not isinstance(event, Chunk)
        row, prompt, number, text = event
        count += len(text.tokens)
        answer = text.text.strip()
        facts = {"log_probability": text.log_probability, "reason": text.finish_reason}
        json = {"source": sources[row // request.sampling.samples], "text": answer, "prompt": prompt, **facts}
        yield Output(row, f"{answer}\n", json, f"{number}  (log p = {text.log_probability:.2f})")
    yield text_summary(count, "tokens", time.perf_counter() - start)


def score_answers(
    task: Task, run: str, rows: Sequence[Row], shots: FewShotPrompt, progress: ProgressCallback
) -> tuple[EvaluationResult, Baseline]:
    """Return the scores of the likeliest answers to pairs, and those of a copy of the source.

    Raises: UserError: a prompt is too long.
    """
    sources, references = ([row.fields[name] for row in rows] for name in ("source", "target"))
    prompts = [shots.prompt(source) for source in sources]
    tokens = min(room_for_answers(task, run, prompts), answer_limit(task, shots, sources))
    outputs = write_answers(task, prompts, tokens, shots.stops, progress)
    scores = [score for metric in METRICS if (score := metric(references, outputs)) is not None]
    notes = () if len(scores) == len(METRICS) else (NO_BLEU,)
    result = EvaluationResult(sources, references, outputs, word_counts(sources), scores, notes=notes)
    return result, Baseline.of(COPY, chrf(references, sources))


def write_answers(
    task: Task, prompts: Sequence[str], tokens: int, stops: Sequence[str], progress: ProgressCallback
) -> list[str]:
    """Return the greedy answer to each prompt. Ranks share the prompts."""
    batches = [prompts[start : start + PROMPTS_AT_ONCE] for start in range(0, len(prompts), PROMPTS_AT_ONCE)]

    def write(index: int) -> list[str]:
        chunks = generate_text(
            task.model,
            task.processor,
            batches[index],
            tokens,
            GREEDY,
            end_tokens=task.processor.end_tokens,
            stops=stops,
        )
        return [text.text.strip() for text in collect_texts(chunks)]

    return [*chain.from_iterable(share(len(batches), write, progress, task.together))]


def answer_limit(task: Task, shots: FewShotPrompt, sources: Sequence[str]) -> int:
    """Return the largest number of tokens of an answer: half as many again as the examples have, in all or
    for each token of the source."""

    def count(text: str) -> int:
        return max(1, len(task.processor.encode_known(text)[0]))

    lengths = [(count(source), count(target)) for source, target in shots.examples]
    longest, ratio = max(target for _, target in lengths), max(target / source for source, target in lengths)
    limit = LengthLimit.from_lengths(longest, ratio, LengthLimit.maximum)
    return max(limit.for_source(count(source)) for source in sources)


def room_for_answers(task: Task, run: str, prompts: Sequence[str]) -> int:
    """Return the largest number of tokens that the model can write behind the longest prompt.

    A prompt may be as long as the texts of the model's training, and of any length if its state is bounded.
    Only learned positions limit the answer, too.

    Raises: UserError: a prompt is longer.
    """
    longest = max(len(encode_prompt(task.processor, prompt)) for prompt in prompts)
    limit = task.model.limit or task.config.data.context_length
    if longest >= limit and not task.model.bounded:
        raise UserError(
            f"the prompt has {longest:,} tokens, and {run} reads {limit:,} with the answer: give fewer or "
            "shorter examples"
        )
    return LengthLimit.maximum if task.model.limit is None else limit - longest + 1  # the last is not read
