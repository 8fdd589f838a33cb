"""Tasks whose models predict hidden tokens of a text, and so fill the gaps of a text."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples, RaggedArray
from foveal.data.core.length_buckets import BucketedEvalBatches
from foveal.data.text.hidden_tokens import MASK_PLACEHOLDER, encode_with_masks
from foveal.data.text.special_tokens import SpecialTokens, token_names
from foveal.data.text.text_windows import TokenizedText
from foveal.data.text.tokenizers import TokenIds
from foveal.generation.events import GenerationEvent, Output, Summary
from foveal.generation.request import GenerateRequest
from foveal.inspection.chosen_input import ChosenInput
from foveal.metrics.ngram_model import MAX_TOKENS, ngram_log_probabilities
from foveal.objectives.hidden_tokens import HiddenTokensObjective
from foveal.ops.padding import sequence_mask
from foveal.tasks.baseline import Baseline
from foveal.tasks.shapes.corpus import token_unit
from foveal.tasks.shapes.text_windows import TextWindowsTask
from foveal.training.protocols import Batches

PREVIEW_TOKENS = 48
"""Tokens of the text whose gaps a preview fills."""
TokenProbability = tuple[int, float]
"""A token, and its probability."""


class HiddenTokensTask(TextWindowsTask, ABC):
    """Base class of tasks that predict some tokens of each window of a text from others."""

    next_command = ("generate", "--prompt", "a text with a [MASK]")
    generate_options = ("prompt", "input", "best")

    @abstractmethod
    def objective(self, preview_examples: TokenizedText | None = None) -> HiddenTokensObjective:
        """Return the objective. A preview fills the gaps of the first words of `preview_examples`."""

    def gap_columns(self, source: TokenIds) -> dict[str, TokenIds]:
        """Return the columns of a text with gaps, `mask` tokens, from which a model predicts these."""
        return {"source": source, "hidden": (source == SpecialTokens(self.processor.size).mask).astype(int)}

    @property
    def longest_source(self) -> int | None:
        """The longest text that the model reads; None if any length fits."""
        return None

    def preview_batch(self, text: TokenizedText | None) -> ExampleBatch | None:
        """Return a batch of the first words of a text, whose gaps a preview fills; None without a text."""
        if text is None:
            return None
        window = min(PREVIEW_TOKENS, self.config.data.context_length)
        return self.batches.for_evaluation(text, 1, window).batch(0, 0)

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

    def count_inputs(self, split: TokenizedText) -> int:
        return self.windows(split).per_epoch

    def input_of_row(self, split: TokenizedText, row: int) -> ChosenInput:
        """Return window `row` of a text, with some of its tokens hidden."""
        batch = self.windows(split).batch(0, row)
        hidden = batch.columns["target"][batch.columns["hidden"].bool()]
        return self._input(batch, " ".join(token_names(hidden.tolist(), self.processor)))

    def input_of_text(self, text: str) -> ChosenInput:
        """Return a text with gaps. The targets are the tokens that the model finds likeliest in them."""
        tokens = self._encode(1, text)
        columns = {name: torch.from_numpy(row)[None] for name, row in self.gap_columns(tokens).items()}
        columns["target"], lengths = columns["source"], torch.tensor([len(tokens)])
        batch = ExampleBatch(torch.arange(1), columns, {"source": lengths}, lengths)
        return self._input(self.objective().with_own_answer(batch), None)

    def _input(self, batch: ExampleBatch, reference: str | None) -> ChosenInput:
        targets = batch.columns["target"][batch.columns["hidden"].bool()]
        source = token_names(batch.columns["source"][0].tolist(), self.processor)
        names = token_names(targets.tolist(), self.processor)
        return ChosenInput(batch, source, names, self.objective(), reference)

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
        tokens, limit = encode_with_masks(text, self.processor), self.longest_source
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
        rows = [self.gap_columns(source) for source in sources]
        examples = Examples({name: RaggedArray.from_rows(row[name] for row in rows) for name in rows[0]})
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
