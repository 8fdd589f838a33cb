"""Tasks that generate a text for each source, from any source."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from torch import nn

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.open import OpenedData
from foveal.data.pairs.target import Target
from foveal.data.prepare_examples import read_unlabeled
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.text_target import TextTarget
from foveal.data.text.tokenizers import Tokenizer
from foveal.generation.beam_search import Hypothesis
from foveal.generation.events import Artifact, GenerationEvent, Output, Summary
from foveal.generation.options import (
    DEFAULT_BEAM_SEARCH,
    DEFAULT_SAMPLING,
    TARGET_BEAM,
    TARGET_LENGTH_PENALTY,
    AttentionMapOptions,
)
from foveal.generation.request import BEAM_OPTIONS, SAMPLING_OPTIONS, GenerateRequest
from foveal.metrics.score import MetricResult
from foveal.models.decoder import decoder
from foveal.models.encoder import EncoderWithHead
from foveal.models.mixer_settings import samples_positions
from foveal.models.stack_settings import DECODER, keys_below
from foveal.objectives.hard_attention import HardAttentionObjective
from foveal.objectives.preview import PreviewExamples
from foveal.objectives.sequence_to_sequence import SequenceToSequenceObjective
from foveal.tasks.baseline import Baseline, SimpleAnswers, best_baseline
from foveal.tasks.defaults import Defaults, DefaultsRequest
from foveal.tasks.results import Alternative, Answer, EvaluationResult, LabelsByRow, TaskSummary
from foveal.tasks.shapes.examples import ExampleTask, default_vocab_size, tokens_in_words
from foveal.tasks.shapes.few_texts import FewTexts
from foveal.tasks.shapes.labeling import SmoothedSettings
from foveal.tasks.shapes.named_metrics import check_metrics, named_scores
from foveal.tasks.shapes.text_baseline import text_answers, text_memory

NUM_PREVIEWS = 3
NO_BLEU = "BLEU is left out: it compares four words in a row, and no reference has four"
Metric = Callable[[list[str], list[str]], MetricResult | None]
"""A function from references and outputs to a score, or to None if it says nothing about such texts."""


class SequenceToSequenceTask(ExampleTask, ABC):
    """Base class of tasks with an encoder, and a decoder that reads its memory."""

    Settings: ClassVar[type[SmoothedSettings]] = SmoothedSettings
    settings: SmoothedSettings
    target_kind = "text"
    sequence = "target"
    writes_answers = True
    target: ClassVar[Target[Any]] = TextTarget()
    metrics: ClassVar[tuple[Metric, ...]]
    """The metrics. The first metric with a score ranks the worst examples."""
    generate_options = ("prompt", "input", *SAMPLING_OPTIONS, *BEAM_OPTIONS, "attention", "head")
    reads_files: ClassVar[str] = ""
    """The kind of files for --input, if sources are not texts."""
    no_attention_map: ClassVar[str] = ""
    """The kind of sources, if --attention can't show them."""
    few_texts: ClassVar[FewTexts | None] = None
    """What to say before few rows are trained on by default; None to say nothing."""
    examples_in_words: ClassVar[str]
    """The words for the examples in a summary, such as captioned images."""

    def defaults(self, request: DefaultsRequest) -> Defaults:
        """Return the task's preset, with advice if the rows are too few to learn to write."""
        if self.few_texts is None:
            return Defaults(self.preset)
        texts, classify = self.training_targets(request.data), self.classifying_options(request.data)
        return Defaults(self.preset, advice=self.few_texts.advice(request.data.name, texts, classify))

    def classifying_options(self, data: OpenedData) -> str:
        """Return the options of `foveal train` that predict the text as a label; empty if there are none."""
        return ""

    def settings_read(self) -> set[str]:
        return super().settings_read() | keys_below("model", DECODER)

    def check(self) -> None:
        super().check()
        check_metrics(self.settings, self.target_kind)

    def new_model(self) -> nn.Module:
        return self.model_for_vocab(self.encoder(), self.processor.target.tokenizer.size)

    def example_model(self) -> nn.Module:
        return self.model_for_vocab(self.encoder(), default_vocab_size(self.config))

    def model_for_vocab(self, encoder: Any, tokens: int) -> EncoderWithHead:
        """Return the model for a tokenizer with `tokens` tokens."""
        vocabulary, max_length = SpecialTokens(tokens).vocab_size, self.config.data.max_length
        return EncoderWithHead(encoder, decoder(self.config.model, vocabulary, max_length, encoder.width))

    @property
    def num_outcomes(self) -> int:
        return SpecialTokens(self.processor.target.tokenizer.size).vocab_size

    def summarize(self, prepared: PreparedData[Any, Any]) -> TaskSummary:
        task = f"{self.name}: {self.source_in_words()} to {tokens_in_words(self.processor.target.tokenizer)}"
        return TaskSummary(self.examples_in_words, task, self.num_outcomes, "target tokens")

    @abstractmethod
    def source_in_words(self) -> str:
        """Return a description of what the model reads of a source."""

    @abstractmethod
    def encoder(self) -> Any:
        """Return the encoder for the processor's sources. Without a processor, use default sizes."""

    def objective(self, preview_examples: SplitData[Any] | None = None) -> SequenceToSequenceObjective:
        target: Tokenizer = self.processor.target.tokenizer
        previews = None
        if preview_examples is not None:
            rows = np.arange(min(NUM_PREVIEWS, len(preview_examples)))
            batch = self.eval_batch(preview_examples.examples, rows)
            titles = [*map(self.preview_title, preview_examples.sources[: len(rows)])]
            previews = PreviewExamples(batch, titles, target.decode)
        is_hard = samples_positions(self.config.model)
        make = HardAttentionObjective if is_hard else SequenceToSequenceObjective
        limit, smoothing = self.processor.target.length_limit, self.settings.label_smoothing
        return make(self.model, SpecialTokens(target.size), limit, smoothing, previews)

    def preview_title(self, source: str) -> str:
        """Return the name of a source in previews. That of a file has no folder, which may change."""
        name, colon, question = source.partition(": ")
        return f"{Path(name).name}{colon}{question}"

    def score(
        self, data: SplitData[Any], predicted: LabelsByRow, progress: ProgressCallback
    ) -> EvaluationResult:
        """Return the metrics of the outputs of a beam search."""
        outputs, references = self.predicted_texts(data.examples, progress), self.written(data.references)
        scores = [score for metric in self.metrics if (score := metric(references, outputs)) is not None]
        notes = () if len(scores) == len(self.metrics) else (NO_BLEU,)
        scores += named_scores(self.settings, references, outputs, scores)
        return EvaluationResult(data.sources, references, outputs, data.lengths, scores, notes=notes)

    def written(self, texts: Sequence[str]) -> list[str]:
        """Return texts as the model can write them: word tokenizers do not preserve white space."""
        is_word = self.processor.target.tokenizer.kind == "word"
        return [" ".join(text.split()) for text in texts] if is_word else [*texts]

    def baseline(self, train: SplitData[Any], held_out: SplitData[Any]) -> Baseline | None:
        answers = {name: self.written(each) for name, each in self.simple_answers(train, held_out).items()}
        return best_baseline(answers, self.written(held_out.references), self.baseline_score)

    def simple_answers(self, train: SplitData[Any], held_out: SplitData[Any]) -> SimpleAnswers:
        """Return the texts that simple methods write for the held-out rows."""
        return dict(text_answers(self.source, train, held_out, self.config.training.seed))

    def baseline_memory(self, train: SplitData[Any], held_out: SplitData[Any]) -> int:
        return text_memory(self.source, len(train), len(held_out))

    def baseline_score(self, references: list[str], outputs: list[str]) -> MetricResult:
        """Return the score by which the model is compared with a baseline: the first that says something."""
        scores = (metric(references, outputs) for metric in self.metrics)
        return next(score for score in scores if score is not None)

    def answers(self, examples: Any, top: int, progress: ProgressCallback) -> list[Answer]:
        """Return the best texts of a beam search, which is as wide as in evaluation, or `top`."""
        objective, beam = self.objective(), max(TARGET_BEAM, top)

        def answer(hypotheses: Sequence[Hypothesis]) -> Answer:
            texts = [self.target_text(objective, each) for each in hypotheses]
            means = [each.log_probability / max(1, len(each.tokens)) for each in hypotheses]
            return written_answer(texts, means)

        def answers(batch: ExampleBatch) -> list[Answer]:
            # Hypotheses grow by one token at a time: even a beam of them needs less memory than training.
            return [*map(answer, objective.beam_decode(batch, beam, top, TARGET_LENGTH_PENALTY))]

        return self.by_row(self.example_batches(examples), answers, progress)

    def predicted_texts(self, examples: Any, progress: ProgressCallback) -> list[str]:
        return [str(answer.text) for answer in self.answers(examples, 1, progress)]

    def target_text(self, objective: SequenceToSequenceObjective, hypothesis: Hypothesis) -> str:
        """Return the text of a hypothesis."""
        text: str = self.processor.target.tokenizer.decode(objective.strip_special_tokens(hypothesis))
        return text.strip()

    def check_generate(self, request: GenerateRequest) -> None:
        unknown = request.unknown_options(self.generate_options)
        if unknown & {"stop", "tokens"}:
            raise UserError(f"{request.run} generates until the target ends: leave out --stop and --tokens")
        if "out" in unknown:
            raise UserError(f"--out: {request.run} writes text, on standard output; leave it out")
        if self.reads_files and (request.input is None or request.prompt is not None):
            raise UserError(f"{request.run} reads {self.reads_files}: give --input PATH, no --prompt")
        if request.sampling != DEFAULT_SAMPLING and request.beam != DEFAULT_BEAM_SEARCH:
            raise UserError(
                "--best and --length-penalty need beam search: leave them out to sample "
                "(--temperature, --top-k, --top-p, --repetition-penalty, --seed, --samples)"
            )
        if request.attention.attention is not None:
            self.check_attention(request.run, request.attention.attention)

    def check_attention(self, run: str, file: Path) -> None:
        """Check the file that --attention names.

        Raises: UserError: the task has no such figure.
        """
        if self.no_attention_map:
            raise UserError(
                f"--attention: {run} reads {self.no_attention_map}, for which there is no such figure"
            )

    def generate(
        self, request: GenerateRequest, log: Log, progress: ProgressCallback
    ) -> Iterator[GenerationEvent]:
        objective = self.objective()
        sources, examples = self.read_sources(request, log)
        start = time.perf_counter()
        hypotheses = self._decode(objective, sources, examples, request, progress)
        seconds = time.perf_counter() - start
        for row, (source, ranked) in enumerate(zip(sources, hypotheses, strict=True)):
            for hypothesis in ranked:
                yield self._output(objective, row, source, hypothesis)
        tokens = sum(len(hypothesis.tokens) for ranked in hypotheses for hypothesis in ranked)
        if request.attention.attention is not None:
            best = [ranked[0] for ranked in hypotheses]
            content = self.attention_map(objective, examples, best, request.attention)
            yield Artifact("attention", "", content)
        yield text_summary(tokens, "tokens", seconds)

    def read_sources(self, request: GenerateRequest, log: Log) -> tuple[list[str], Any]:
        """Return the names of the sources, and the sources as examples."""
        rows, examples, _ = read_unlabeled(
            self.data_format, str(request.input), self.processor, self.config.data, log
        )
        return [row.fields["source"] for row in rows], examples

    def attention_map(
        self,
        objective: SequenceToSequenceObjective,
        examples: Any,
        hypotheses: Sequence[Hypothesis],
        options: AttentionMapOptions,
    ) -> bytes:
        """Return the content of the file that --attention names.

        Raises: UserError: the task has no such figure.
        """
        raise UserError(f"--attention: there is no such figure for {self.no_attention_map}; leave it out")

    def _decode(
        self,
        objective: SequenceToSequenceObjective,
        sources: list[str],
        examples: Examples,
        request: GenerateRequest,
        progress: ProgressCallback,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source: the best of a beam search, or samples."""
        beam, sampling = request.beam, request.sampling
        alpha = TARGET_LENGTH_PENALTY if beam.length_penalty is None else beam.length_penalty

        def decode(batch: ExampleBatch) -> list[list[Hypothesis]]:
            if sampling == DEFAULT_SAMPLING:
                return objective.beam_decode(batch, beam.beam or TARGET_BEAM, beam.best, alpha)
            texts = [sources[row] for row in batch.rows.tolist()]
            return objective.sample_decode(batch, texts, sampling.sampling, sampling.samples)

        return self.by_row(self.example_batches(examples), decode, progress)

    def _output(
        self, objective: SequenceToSequenceObjective, row: int, source: str, hypothesis: Hypothesis
    ) -> Output:
        text = self.target_text(objective, hypothesis)
        facts = {"log_probability": hypothesis.log_probability, "reason": hypothesis.finish_reason}
        return Output(row, f"{' '.join(text.split())}\n", {"source": source, "text": text, **facts})


def written_answer(texts: Sequence[str], log_probabilities: Sequence[float]) -> Answer:
    """Return the first text as the answer. Each text has the mean log-probability of its tokens."""
    pairs = zip(texts, log_probabilities, strict=True)
    top = [Alternative(text, math.exp(log_probability)) for text, log_probability in pairs]
    return Answer(top[0].answer, top[0].probability, top, log_probabilities[0])


def text_summary(tokens: int, unit: str, seconds: float) -> Summary:
    """Return the last event of generated text: its tokens and seconds."""
    speed = {"tokens": tokens, "seconds": seconds, "tokens_per_second": tokens / seconds}
    return Summary(tokens, unit, seconds, speed)
