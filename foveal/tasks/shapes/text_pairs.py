"""Tasks that read a text and generate a text."""

from abc import ABC
from collections.abc import Sequence
from typing import Any

import torch

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples, RaggedArray
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.pairs.pair import PairProcessor
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.text_source import PairedTextSource, encode_text
from foveal.data.text.text_target import TextTarget
from foveal.generation.beam_search import Hypothesis
from foveal.generation.decoding_loop import DecodingStart
from foveal.generation.options import AttentionMapOptions
from foveal.generation.request import GenerateRequest
from foveal.models.decoder import decoder
from foveal.models.encoder import EncoderWithHead
from foveal.models.encoder_registry import TokenSizes, make_encoder
from foveal.models.stack_settings import EMBEDDING, keys_below
from foveal.objectives.sequence_to_sequence import SequenceToSequenceObjective
from foveal.tasks.baseline import SimpleAnswers
from foveal.tasks.results import TaskSummary
from foveal.tasks.shapes.attention import text_attention, word_attention_file
from foveal.tasks.shapes.examples import default_vocab_size, token_sizes, tokens_in_words
from foveal.tasks.shapes.text_target import SequenceToSequenceTask


class TextToTextTask(SequenceToSequenceTask, ABC):
    """Base class of tasks on pairs of texts."""

    source = PairedTextSource()
    target = TextTarget("target")
    source_kind = "text"
    encoders = ("text",)
    encoder_source = "text"
    columns = ("source", "target")
    next_command = ("generate", "--prompt", "TEXT")
    examples_in_words = "pairs"
    row_unit = "target tokens"
    length_setting = "max_length"

    def settings_read(self) -> set[str]:
        shares_embedding = self.config.data.shared_vocabulary  # which is the encoder's
        return super().settings_read() - (keys_below("model", EMBEDDING) if shares_embedding else set())

    @property
    def source_sizes(self) -> TokenSizes:
        return token_sizes(self.config, None if self.processor is None else self.processor.source)

    def encoder(self) -> Any:
        return make_encoder(self.config.model.encoder, self.source_sizes)

    def check(self) -> None:
        super().check()
        kind = self.config.model.encoder.kind
        if self.config.data.shared_vocabulary and kind not in self.encoders:
            raise ValueError(
                f"model.encoder.kind={kind} has no table that the decoder can share: set "
                "data.shared_vocabulary=false"
            )

    def model_for_vocab(self, encoder: Any, tokens: int) -> EncoderWithHead:
        shared = encoder.embedding if self.config.data.shared_vocabulary else None
        vocabulary, max_length = SpecialTokens(tokens).vocab_size, self.config.data.max_length
        head = decoder(self.config.model, vocabulary, max_length, encoder.width, shared)
        return EncoderWithHead(encoder, head)

    def planned_sizes(self) -> dict[str, int]:
        return {"vocabulary": default_vocab_size(self.config)}

    @property
    def row_size(self) -> int:
        return 2 * self.config.data.max_length

    def longest_batch(self, rows: int) -> ExampleBatch:
        lengths = torch.full((rows,), self.config.data.max_length)
        tokens = torch.zeros(rows, self.config.data.max_length, dtype=torch.long)
        columns, each = {"source": tokens, "target": tokens}, {"source": lengths, "target": lengths}
        return ExampleBatch(torch.arange(rows), columns, each, lengths)

    def decoding_start(self, batch: ExampleBatch, count: int) -> DecodingStart:
        objective = self.objective()
        memory = objective.memory(batch.cut(slice(0, 1)))
        return DecodingStart(self.model.head, [objective.special_tokens.bos], memory)

    def preview_title(self, source: str) -> str:
        return source

    @property
    def num_outcomes(self) -> int:
        return SpecialTokens(self.processor.target.tokenizer.size).vocab_size

    def summarize(self, prepared: PreparedData[PairProcessor, SplitData[Examples]]) -> TaskSummary:
        source, target = prepared.processor.source, prepared.processor.target.tokenizer
        sides = "of both sides together" if source is target else f"to {target.size:,}"
        task = f"{self.name}: {self.source_in_words()} {sides}"
        return TaskSummary(self.examples_in_words, task, self.num_outcomes, "target tokens")

    def simple_answers(self, train: SplitData[Any], held_out: SplitData[Any]) -> SimpleAnswers:
        return {"a copy of the source": held_out.sources, **super().simple_answers(train, held_out)}

    def source_in_words(self) -> str:
        return tokens_in_words(self.processor.source)

    def read_sources(self, request: GenerateRequest, log: Log) -> tuple[list[str], Examples]:
        sources = request.prompts()
        rows = [encode_text(source.strip(), self.processor.source) for source in sources]
        max_length = self.config.data.max_length
        for number, (source, row) in enumerate(zip(sources, rows, strict=True), 1):
            if not source.strip():
                raise UserError(
                    f"source {number} is empty: give a text (--prompt TEXT, or a line in --input FILE)"
                )
            if len(row) > max_length:
                raise UserError(
                    f"source {number} has {len(row)} tokens, the model reads at most {max_length}: cut it"
                )
        return sources, Examples({"source": RaggedArray.from_rows(rows)})

    def attention_map(
        self,
        objective: SequenceToSequenceObjective,
        examples: Any,
        hypotheses: Sequence[Hypothesis],
        options: AttentionMapOptions,
    ) -> bytes:
        return word_attention_file(self, objective, examples, hypotheses, options, text_attention)
