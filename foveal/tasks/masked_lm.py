"""Masked language models: they predict hidden tokens of a text from the tokens on both sides."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from foveal.config import ConfigError
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples, RaggedArray
from foveal.data.core.length_buckets import BucketedEvalBatches
from foveal.data.core.prepared_data import NO_REUSE, PreparedData, ReusedProcessors
from foveal.data.open import DataPaths
from foveal.data.text.masked_lm_batches import (
    MASK_FRACTION,
    MASK_PLACEHOLDER,
    MaskedBatches,
    TokenizedText,
    encode_with_masks,
)
from foveal.data.text.special_tokens import SpecialTokens, token_names
from foveal.data.text.tokenizers import TokenIds, Tokenizer
from foveal.generation.events import GenerationEvent, Output, Summary
from foveal.generation.request import GenerateRequest
from foveal.heads.masked_lm import MaskedLMHead
from foveal.inspection.chosen_input import ChosenInput
from foveal.layers.embedding import Embedding
from foveal.metrics.ngram_model import MAX_TOKENS, ngram_log_probabilities
from foveal.models.encoder import EncoderWithHead, text_encoder
from foveal.models.encoder_registry import TokenSizes
from foveal.objectives.masked_lm import MaskedLMObjective
from foveal.ops.padding import sequence_mask
from foveal.tasks.baseline import Baseline
from foveal.tasks.results import TaskSummary
from foveal.tasks.shapes.corpus import CorpusTask, token_unit
from foveal.tasks.shapes.examples import default_vocab_size, token_sizes
from foveal.training.protocols import Batches

PREVIEW_TOKENS = 48
"""Tokens of the text whose gaps a preview fills."""
TokenProbability = tuple[int, float]
"""A token, and its probability."""


class MaskedLMTask(CorpusTask):
    name = "masked-lm"
    purpose = "Predict the hidden tokens of a text."
    preset = "masked-lm"
    encoders = ("text",)
    imports = "encoder"
    has_decoder = False
    scored_fraction = MASK_FRACTION
    always_read = ("model.encoder.activation", "model.encoder.norm_epsilon")  # the head has them too
    next_command = ("generate", "--prompt", "a text with a [MASK]")
    generate_options = ("prompt", "input", "best")

    def settings_read(self) -> set[str]:
        return super().settings_read() | {"model.tie_embeddings", "data.max_length"}

    def prepare(
        self, paths: DataPaths, log: Log, reused: ReusedProcessors = NO_REUSE
    ) -> PreparedData[Any, Any]:
        corpus = super().prepare(paths, log, reused)
        train, valid, test = (
            None if tokens is None else TokenizedText(tokens, corpus.processor)
            for tokens in (corpus.train, corpus.valid, corpus.test)
        )
        assert train is not None
        return PreparedData(corpus.processor, train, valid, test, corpus.facts)

    def prepare_held_out(self, data: str, log: Log) -> tuple[TokenizedText, dict[str, Any]]:
        tokens, facts = super().prepare_held_out(data, log)
        return TokenizedText(tokens, self.processor), facts

    @property
    def source_sizes(self) -> TokenSizes:
        return token_sizes(self.config, self.processor)

    def new_model(self) -> EncoderWithHead:
        return self._model_for_vocab(self.processor.size)

    def example_model(self) -> EncoderWithHead:
        return self._model_for_vocab(self.planned_sizes()["vocabulary"])

    def planned_sizes(self) -> dict[str, int]:
        return {"vocabulary": default_vocab_size(self.config)}

    def longest_batch(self, rows: int) -> ExampleBatch:
        length = self.config.data.context_length
        lengths, tokens = torch.full((rows,), length), torch.zeros(rows, length, dtype=torch.long)
        hidden = (torch.arange(length) < MASK_FRACTION * length).long().expand(rows, length)
        columns = {"source": tokens, "target": tokens, "hidden": hidden}
        return ExampleBatch(torch.arange(rows), columns, {"source": lengths}, lengths)

    def _model_for_vocab(self, tokens: int) -> EncoderWithHead:
        sizes, vocabulary = self.config.model.encoder, SpecialTokens(tokens).vocab_size
        encoder = text_encoder(sizes, vocabulary, self.config.data.max_length)
        table = None
        if self.config.model.tie_embeddings:
            if not isinstance(encoder.embedding, Embedding) or encoder.embedding.width != encoder.width:
                raise ConfigError(
                    "model.tie_embeddings needs an embedding as wide as the encoder: set "
                    "model.encoder.embedding_width=0"
                )
            table = encoder.embedding.table
        head = MaskedLMHead(encoder.width, vocabulary, table, sizes.activation, sizes.norm_epsilon)
        return EncoderWithHead(encoder, head)

    def objective(self, preview_examples: TokenizedText | None = None) -> MaskedLMObjective:
        """Return the objective. A preview fills the gaps of the first words of `preview_examples`."""
        if preview_examples is None:
            return MaskedLMObjective(self.model, self.processor)
        window = min(PREVIEW_TOKENS, self.config.data.context_length)
        batch = MaskedBatches.for_evaluation(preview_examples, 1, window).batch(0, 0)
        return MaskedLMObjective(self.model, self.processor, batch)

    def train_batches(self, data: TokenizedText) -> MaskedBatches:
        """Return windows of `data.context_length` tokens, with different masks in each epoch."""
        sizes, seed = self.config.data, self.config.training.seed
        rows = sizes.batch_tokens // sizes.context_length
        return MaskedBatches.for_training(data, rows, sizes.context_length, seed)

    def eval_batches(self, data: TokenizedText) -> MaskedBatches:
        """Return a whole held-out text, with the same masks each time."""
        sizes = self.config.data
        rows = sizes.batch_tokens // sizes.context_length
        return MaskedBatches.for_evaluation(data, rows, sizes.context_length)

    def baseline(self, train: TokenizedText, held_out: TokenizedText) -> Baseline:
        """Return the mean nats of the hidden tokens by counts of training: of tokens, or of pairs with the
        token before where that token is visible. The better of both is taken."""
        known = torch.from_numpy(train.tokens[-MAX_TOKENS:].astype(np.int64))
        tokens, hidden, sees_token_before = window_tokens(self.eval_batches(held_out), self.processor.size)
        # The first token has none before, so another is put before all.
        alone, *paired = ngram_log_probabilities(known, F.pad(tokens, (1, 0)), self.processor.size, 1)
        unit = token_unit(self.processor.kind)
        nats = {f"counts of {unit}": alone}
        for pairs in paired:
            name = f"counts of {unit}, and of pairs with the one before"
            nats[name] = torch.where(sees_token_before, pairs, alone)
        means = {name: -float(each[hidden].mean()) for name, each in nats.items()}
        best = min(means, key=means.__getitem__)
        return Baseline(best, "loss", means[best], higher_is_better=False, is_rate=False)

    @property
    def num_outcomes(self) -> int:
        return SpecialTokens(self.processor.size).vocab_size

    def summarize(self, prepared: PreparedData[Tokenizer, TokenizedText]) -> TaskSummary:
        kind, size = prepared.processor.kind, prepared.processor.size
        unit = token_unit(kind)
        task = f"masked language model: predict hidden tokens of {size:,} {kind} tokens"
        return TaskSummary(unit, task, self.num_outcomes, unit)

    def count_inputs(self, split: TokenizedText) -> int:
        return self._windows(split).per_epoch

    def input_of_row(self, split: TokenizedText, row: int) -> ChosenInput:
        """Return window `row` of a text, with some of its tokens hidden."""
        batch = self._windows(split).batch(0, row)
        hidden = batch.columns["target"][batch.columns["hidden"].bool()]
        return self._input(batch, " ".join(token_names(hidden.tolist(), self.processor)))

    def input_of_text(self, text: str) -> ChosenInput:
        """Return a text with gaps. The targets are the tokens that the model finds likeliest in them."""
        tokens = self._encode(1, text)
        source, special = torch.from_numpy(tokens)[None], SpecialTokens(self.processor.size)
        columns = {"source": source, "target": source, "hidden": (source == special.mask).long()}
        lengths = torch.tensor([len(tokens)])
        batch = ExampleBatch(torch.arange(1), columns, {"source": lengths}, lengths)
        return self._input(self.objective().with_own_answer(batch), None)

    def _input(self, batch: ExampleBatch, reference: str | None) -> ChosenInput:
        targets = batch.columns["target"][batch.columns["hidden"].bool()]
        source = token_names(batch.columns["source"][0].tolist(), self.processor)
        names = token_names(targets.tolist(), self.processor)
        return ChosenInput(batch, source, names, self.objective(), reference)

    def _windows(self, text: TokenizedText) -> MaskedBatches:
        return MaskedBatches.for_evaluation(text, 1, self.config.data.context_length)

    def check_generate(self, request: GenerateRequest) -> None:
        unknown = request.unknown_options(self.generate_options)
        if "out" in unknown:
            raise UserError(f"--out: {request.run} writes text, on standard output; leave it out")
        if unknown:
            raise UserError(f"{request.run} fills gaps: leave out all but --prompt, --input, --best")

    def generate(
        self, request: GenerateRequest, log: Log, progress: ProgressCallback
    ) -> Iterator[GenerationEvent]:
        """Yield each text with the likeliest token in each gap. Gaps are predicted independently.

        If `--best` is larger than 1, the likeliest tokens of each gap follow.
        """
        texts, best = request.prompts(), request.beam.best
        for number, text in enumerate(texts, 1):
            if MASK_PLACEHOLDER not in text:
                raise UserError(
                    f"text {number} has no gap: write {MASK_PLACEHOLDER} where a token is to be predicted"
                )
        sources = [self._encode(number, text) for number, text in enumerate(texts, 1)]
        gaps_by_row = self._predict_gaps(sources, best, progress)
        for row, (prompt, source, gaps) in enumerate(zip(texts, sources, gaps_by_row, strict=True)):
            text = self._fill(source, gaps)
            lines = [" ".join(text.split()), *(self._gap_lines(gaps) if best > 1 else ())]
            tokens = [[self._token_json(*guess) for guess in guesses] for guesses in gaps]
            json = {"prompt": prompt, "text": text, "gaps": tokens}
            yield Output(row, "".join(f"{line}\n" for line in lines), json)
        yield Summary(len(texts), "", 0.0, {})

    def _encode(self, number: int, text: str) -> TokenIds:
        """Return the tokens of a text, which may have gaps.

        Raises: UserError: the text is longer than the model reads.
        """
        tokens, limit = encode_with_masks(text, self.processor), self.model.encoder.limit
        if limit is not None and len(tokens) > limit:
            raise UserError(
                f"text {number} has {len(tokens)} tokens, the model reads at most {limit}: cut it"
            )
        return tokens

    def _predict_gaps(
        self, sources: list[TokenIds], best: int, progress: ProgressCallback
    ) -> list[list[list[TokenProbability]]]:
        """Return the `best` likeliest tokens, without special tokens, for each gap of each source."""
        objective, size = self.objective(), self.processor.size
        hidden = [(row == SpecialTokens(size).mask).astype(np.int64) for row in sources]
        examples = Examples(
            {"source": RaggedArray.from_rows(sources), "hidden": RaggedArray.from_rows(hidden)}
        )
        batches = BucketedEvalBatches(examples, self.config.data.batch_tokens)

        def guesses(batch: ExampleBatch) -> list[list[list[TokenProbability]]]:
            likeliest = objective.predict_batch(batch)[:, :size].topk(min(best, size))
            pairs = zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True)
            gaps = iter([list(zip(*pair, strict=True)) for pair in pairs])
            counts = batch.columns["hidden"].sum(1).tolist()
            return [[next(gaps) for _ in range(count)] for count in counts]

        return self.by_row(batches, guesses, progress)

    def _fill(self, source: TokenIds, gaps: list[list[TokenProbability]]) -> str:
        """Return the text with the likeliest token in each gap."""
        tokens, size = source.copy(), self.processor.size
        tokens[source == SpecialTokens(size).mask] = [guesses[0][0] for guesses in gaps]
        text: str = self.processor.decode(tokens[tokens < size])
        return text.strip()

    def _gap_lines(self, gaps: list[list[TokenProbability]]) -> Iterator[str]:
        for number, guesses in enumerate(gaps, 1):
            tokens = ", ".join(f"{self.processor.decode([token])!r} {share:.3f}" for token, share in guesses)
            yield f"    gap {number}: {tokens}"

    def _token_json(self, token: int, probability: float) -> dict[str, Any]:
        return {"text": self.processor.decode([token]), "probability": probability}


def window_tokens(batches: Batches, vocabulary: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return all tokens of masked windows without special tokens, which of them are hidden, and which have a
    visible token before them in their window."""
    parts = list[tuple[Tensor, Tensor, Tensor]]()
    for index in range(batches.per_epoch):
        batch = batches.batch(0, index)
        tokens, hidden = batch.columns["target"], batch.columns["hidden"].bool()
        is_text = sequence_mask(batch.lengths["source"], tokens.shape[1]) & (tokens < vocabulary)
        sees_before = F.pad(is_text & ~hidden, (1, 0))[:, :-1]
        parts.append((tokens[is_text], hidden[is_text], sees_before[is_text]))
    tokens, hidden, sees_before = (torch.cat(column) for column in zip(*parts, strict=True))
    return tokens, hidden, sees_before
