"""Language models: they predict each token of a text from the tokens before it."""

import math
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from torch import Tensor, cat, from_numpy, int32, int64, nn, zeros

from foveal.config.values import Fraction, ReadIf
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data.core.batching import TokenBatch
from foveal.data.open import OpenedData
from foveal.data.prepare_corpus import PreparedCorpus
from foveal.data.text.corpus import open_text_source
from foveal.data.text.token_batches import (
    LookedUpTokens,
    StreamBatches,
    TokenEvalBatches,
    TokenRows,
    WindowBatches,
)
from foveal.data.text.token_store import TokenArray
from foveal.generation.decoding_loop import DecodingStart
from foveal.generation.events import Chunk, GenerationEvent, Output
from foveal.generation.options import DEFAULT_BEAM_SEARCH
from foveal.generation.request import BEAM_OPTIONS, SAMPLING_OPTIONS, GenerateRequest
from foveal.generation.text_stream import GeneratedText, encode_prompt
from foveal.heads.decoder_lm import DecoderLM
from foveal.inspection.chosen_input import ChosenInput
from foveal.layers.ngram_lookup import MEMORY, training_inputs
from foveal.metrics.ngram_model import MAX_TOKENS, ngram_log_probabilities
from foveal.models.decoder import language_model
from foveal.models.stack_settings import DECODER, keys_below
from foveal.objectives.language_model import LanguageModelObjective
from foveal.tasks.base import TaskSettings
from foveal.tasks.baseline import Baseline
from foveal.tasks.defaults import Defaults, DefaultsRequest
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.results import TaskSummary
from foveal.tasks.shapes.continued_prompts import sample_texts, search_texts
from foveal.tasks.shapes.corpus import CorpusTask, token_unit
from foveal.tasks.shapes.few_shot import answer_sources
from foveal.tasks.shapes.text_inputs import count_windows, typed_text, window_of_text
from foveal.tasks.shapes.text_target import text_summary

DEFAULT_VOCAB_SIZE = 65
"""The number of different characters of English plays. A BPE vocabulary has the size of the config."""
LITTLE_TEXT = 2_000_000
"""Bytes of text up to which the default model looks up n-grams: about what the lookup remembers."""
MOST_LOOKED_UP = 20_000_000
"""Tokens of a text at most whose n-grams are looked up: they take about 200 bytes each meanwhile."""
EVAL_ROWS = 8
"""Number of streams in which a held-out text is read. Each stream starts without history."""
DEFAULT_MAX_TOKENS = 500
ENCODER, EMBEDDING_TABLE, PROJECTION = "encoder.", "embedding.table", "projection."
"""Names of weights."""


class LanguageModelSettings(TaskSettings):
    reduction: Literal["mean", "sum"] = "mean"
    """Loss of a chunk: mean over its tokens, or sum over them (as in min-char-rnn)."""
    loss_positions: Literal["all", "last"] = "all"
    """Positions that have a loss: all, or only the last of each window."""
    batching: Literal["streams", "windows"] = "windows"
    """Batches of text: windows (random, without history) or streams (contiguous, with carried state)."""
    reset_probability: Annotated[Fraction, ReadIf("batching", "streams")] = 0.0
    """Probability that a chunk starts from a new state, so that the model learns to begin a text."""


class LanguageModelTask(CorpusTask):
    name = "language-model"
    purpose = "Predict the next token of a text."
    preset = "demo"
    Settings = LanguageModelSettings
    settings: LanguageModelSettings
    encoders = ("none",)
    datasets = ("shakespeare", "python-source")
    is_default = True
    sequence = "context"
    positions_alike = True
    length_setting = "context_length"
    imports = "decoder"
    exports = True
    model_reused_as = "text"
    next_command = ("generate",)
    generate_options = ("prompt", "input", "tokens", "stop", "shots", *SAMPLING_OPTIONS, *BEAM_OPTIONS)
    takes_shots = True

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 1 for running text, for folders of texts, and for a table with a column of text."""
        if data.kind == "table":
            text = str(named.get("text", "text"))
            return (
                Fit(1, f"there is a column {text} and none to learn from it")
                if text in data.columns
                else NO_FIT
            )
        return Fit(1, data.evidence.reason) if data.kind in ("texts", "text", "missing") else NO_FIT

    def defaults(self, request: DefaultsRequest) -> Defaults:
        """Return the preset with an n-gram lookup for little text."""
        files = open_text_source(request.data.train, self.config.data.text).files
        size = sum(path.stat().st_size for path in files)
        if size > LITTLE_TEXT:
            return Defaults(self.preset)
        reason = f"{size / 1e6:.1f} MB of text are little: it is told what followed its last tokens before"
        return Defaults("ngram-lstm", reason, undo=f"--model {self.preset}")

    def settings_read(self) -> set[str]:
        return super().settings_read() | {"model.ngram_lookup"} | keys_below("model", DECODER)

    def check(self) -> None:
        super().check()
        settings = self.settings
        if settings.reduction == "sum" and settings.loss_positions == "last":
            raise ValueError(
                "task.reduction=sum adds up a chunk's positions; with task.loss_positions=last use mean"
            )

    def new_model(self) -> DecoderLM:
        return language_model(self.config.model, self.processor.size, self.config.data.context_length)

    def example_model(self) -> DecoderLM:
        vocabulary = self.planned_sizes()["vocabulary"]
        return language_model(self.config.model, vocabulary, self.config.data.context_length)

    def planned_sizes(self) -> dict[str, int]:
        data = self.config.data
        return {"vocabulary": data.vocab_size if data.tokenizer == "bpe" else DEFAULT_VOCAB_SIZE}

    def longest_batch(self, rows: int) -> TokenBatch:
        tokens = zeros(rows, self.config.data.context_length, dtype=int64)
        return TokenBatch(tokens, tokens)

    def decoding_start(self, batch: TokenBatch, count: int) -> DecodingStart:
        return DecodingStart(self.model, batch.inputs[0, :-count].numpy())

    def objective(self, preview_examples: TokenArray | None = None) -> LanguageModelObjective:
        """Return the objective. Previews need no examples, since the model generates without a prompt."""
        settings, seed = self.settings, self.config.training.seed
        carry = settings.batching == "streams"
        return LanguageModelObjective(
            self.model, self.processor, carry, settings.reduction, settings.loss_positions, seed
        )

    def store_training_data(self, data: TokenArray) -> bool:
        """Store the end of the training text, if the model looks up n-grams."""
        if self.model.lookup is None:
            return False
        self.model.lookup.store_text(from_numpy(data[-MEMORY:].astype(np.int64)))
        return True

    def train_batches(self, data: TokenRows) -> StreamBatches | WindowBatches:
        tokens = data
        longest = self.config.model.ngram_lookup
        if longest and not isinstance(data, LookedUpTokens):
            self._check_looked_up(len(data))
            tokens = LookedUpTokens(
                len(data),
                lambda: training_inputs(from_numpy(data.astype(np.int64)), longest).to(int32).numpy(),
            )
        sizes, training, settings = self.config.data, self.config.training, self.settings
        rows = sizes.batch_tokens // sizes.context_length
        if settings.batching == "windows":
            return WindowBatches(tokens, rows, sizes.context_length, training.seed)
        accumulation, reset = training.grad_accumulation, settings.reset_probability
        return StreamBatches(tokens, rows, sizes.context_length, training.seed, accumulation, reset)

    def eval_batches(self, data: TokenArray) -> TokenEvalBatches:
        tokens: TokenRows = data
        if self.model.lookup is not None:
            self._check_looked_up(len(data))
            tokens = LookedUpTokens(len(data), partial(self._looked_up, data))
        return TokenEvalBatches(tokens, EVAL_ROWS, self.config.data.context_length)

    def _looked_up(self, held_out: TokenArray) -> TokenArray:
        """Return the tokens of a held-out text with their followers."""
        tokens = from_numpy(held_out.astype(np.int64)).to(self.model.lookup.text.device)
        looked_up: TokenArray = self.model.lookup.held_out_inputs(tokens).to(int32).cpu().numpy()
        return looked_up

    def _check_looked_up(self, tokens: int) -> None:
        """Check that the n-grams of a text fit into memory.

        Raises: UserError: the text is too long.
        """
        if tokens > MOST_LOOKED_UP:
            raise UserError(
                f"model.ngram_lookup={self.config.model.ngram_lookup}: it looks up texts of at most "
                f"{MOST_LOOKED_UP:,} tokens, and this text has {tokens:,}; set model.ngram_lookup=0"
            )

    def baseline(self, train: TokenArray, held_out: TokenArray) -> Baseline:
        """Return the score of counts of n-grams, for the n whose score is best."""
        known, text = (from_numpy(tokens.astype(np.int64)) for tokens in (train[-MAX_TOKENS:], held_out))
        results = ngram_log_probabilities(known, text, self.processor.size)
        nats, longest = min((-float(each.sum()), n) for n, each in enumerate(results, 1))
        bits = nats / math.log(2) / int(self.processor.characters[held_out[1:]].sum())
        name = f"counts of n-grams of up to {longest} {token_unit(self.processor.kind)}"
        return Baseline(name, "bits_per_character", bits, higher_is_better=False, is_rate=False)

    @property
    def num_outcomes(self) -> int:
        return int(self.processor.size)

    def count_inputs(self, split: TokenArray) -> int:
        return count_windows(split, self.config.data.context_length)

    def input_of_row(self, split: TokenArray, row: int) -> ChosenInput:
        return window_of_text(self, split, row)

    def input_of_text(self, text: str) -> ChosenInput:
        return typed_text(self, text)

    def summarize(self, prepared: PreparedCorpus) -> TaskSummary:
        kind, size = prepared.processor.kind, prepared.processor.size
        unit = token_unit(kind)
        return TaskSummary(
            unit, f"language model: predict the next of {size:,} {kind} tokens", self.num_outcomes, unit
        )

    def encoder_weights(self, tensors: dict[str, Tensor], encoder: nn.Module) -> dict[str, Tensor]:
        """Return all weights except the projection. The special tokens are those of `encoder`."""
        lent = {ENCODER + name: x for name, x in tensors.items() if not name.startswith(PROJECTION)}
        table = lent[ENCODER + EMBEDDING_TABLE]
        special = encoder.get_parameter(EMBEDDING_TABLE).detach()[len(table) :]
        lent[ENCODER + EMBEDDING_TABLE] = cat([table, special.to(table)])
        return lent

    def check_generate(self, request: GenerateRequest) -> None:
        unknown = request.unknown_options(self.generate_options)
        if "out" in unknown:
            raise UserError(f"--out: {request.run} writes text, on standard output; leave it out")
        if unknown:
            raise UserError(f"--attention: {request.run} is a language model, which reads no source")
        if not request.beam.beam and request.beam != DEFAULT_BEAM_SEARCH:
            raise UserError("--best and --length-penalty need --beam N: add --beam N, or leave them out")
        if request.shots is not None and request.beam.beam:
            raise UserError("--shots: an answer ends with its line, which --beam can't see; leave out --beam")

    def generate(
        self, request: GenerateRequest, log: Log, progress: ProgressCallback
    ) -> Iterator[GenerationEvent]:
        """Yield texts that continue the prompts. A single sampled text is also streamed in chunks."""
        if request.shots is not None:
            yield from answer_sources(self, request, request.shots)
            return
        prompts = request.prompts()
        tokens = self._default_max_tokens(prompts) if request.tokens is None else request.tokens
        start, count = time.perf_counter(), 0
        continue_prompts = search_texts if request.beam.beam else sample_texts
        for event in continue_prompts(self, request, prompts, tokens):
            if isinstance(event, Chunk):
                yield event
                continue
            row, prompt, number, text = event
            count += len(text.tokens)
            yield _output(row, prompt, number, text)
        yield text_summary(count, token_unit(self.processor.kind), time.perf_counter() - start)

    def _default_max_tokens(self, prompts: list[str]) -> int:
        """Return the default number of tokens, or as many as the learned positions allow after the
        prompts."""
        limit = self.model.limit
        if limit is None:
            return DEFAULT_MAX_TOKENS
        longest = max(len(encode_prompt(self.processor, prompt)) for prompt in prompts)
        return max(1, min(DEFAULT_MAX_TOKENS, limit - longest + 1))  # the last token is not read


def _output(row: int, prompt: str, number: int, text: GeneratedText) -> Output:
    facts: dict[str, Any] = {"log_probability": text.log_probability, "reason": text.finish_reason}
    title = f"{number}  (log p = {text.log_probability:.2f})"
    return Output(row, f"{prompt}{text.text}\n", {"prompt": prompt, "text": text.text, **facts}, title)
