"""Masked language models: they predict hidden tokens of a text from the tokens on both sides."""

import torch

from foveal.config import ConfigError
from foveal.data.core.batching import ExampleBatch
from foveal.data.text.masked_lm_batches import MASK_FRACTION, MaskedBatches
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.text_windows import TokenizedText
from foveal.heads.masked_lm import MaskedLMHead
from foveal.layers.embedding import Embedding
from foveal.models.encoder import EncoderWithHead, text_encoder
from foveal.models.encoder_registry import TokenSizes
from foveal.objectives.masked_lm import MaskedLMObjective
from foveal.tasks.shapes.examples import token_sizes
from foveal.tasks.shapes.hidden_tokens import HiddenTokensTask


class MaskedLMTask(HiddenTokensTask):
    name = "masked-lm"
    purpose = "Predict the hidden tokens of a text."
    preset = "masked-lm"
    encoders = ("text",)
    imports = "encoder"
    has_decoder = False
    scored_fraction = MASK_FRACTION
    always_read = ("model.encoder.activation", "model.encoder.norm_epsilon")  # the head has them too
    batches = MaskedBatches
    model_in_words = "masked language model: predict hidden tokens"

    def settings_read(self) -> set[str]:
        return super().settings_read() | {"model.tie_embeddings", "data.max_length"}

    @property
    def source_sizes(self) -> TokenSizes:
        return token_sizes(self.config, self.processor)

    def new_model(self) -> EncoderWithHead:
        return self._model_for_vocab(self.processor.size)

    def example_model(self) -> EncoderWithHead:
        return self._model_for_vocab(self.planned_sizes()["vocabulary"])

    def longest_batch(self, rows: int) -> ExampleBatch:
        length = self.config.data.context_length
        lengths, tokens = torch.full((rows,), length), torch.zeros(rows, length, dtype=torch.long)
        hidden = (torch.arange(length) < MASK_FRACTION * length).long().expand(rows, length)
        columns = {"source": tokens, "target": tokens, "hidden": hidden}
        return ExampleBatch(torch.arange(rows), columns, {"source": lengths}, lengths)

    @property
    def longest_source(self) -> int | None:
        limit: int | None = self.model.encoder.limit
        return limit

    def objective(self, preview_examples: TokenizedText | None = None) -> MaskedLMObjective:
        return MaskedLMObjective(self.model, self.processor, self.preview_batch(preview_examples))

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
